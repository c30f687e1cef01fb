"""A progress bar for long work: progress, text, and the time left."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

_WIDTH: Final = 24
_LINE_EVERY: Final = 60.0
"""Seconds between two lines, if the output is not a terminal."""


class ProgressBar:
    """A bar that is redrawn in place on a terminal. Elsewhere it is one line per minute.

    ``stream``: the output, default: standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._in_place = self._stream.isatty()
        self._drawn = -_LINE_EVERY
        self._width = 0

    def show(self, done: float, seconds_left: float, text: str) -> None:
        """Draw the bar.

        - ``done``: the progress, from 0 to 1.
        - ``seconds_left``: seconds until the end.
        - ``text``: one line about the work so far.
        """
        now = time.monotonic()
        if not self._in_place and now - self._drawn < _LINE_EVERY:
            return
        self._drawn = now
        line = bar(done, seconds_left, text)
        padded = line.ljust(self._width)
        self._width = len(line)
        self._write(f"\r{padded}" if self._in_place else f"{line}\n")

    def clear(self) -> None:
        """Remove the bar from the terminal, so that another line can be printed there."""
        if self._in_place:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(done: float, seconds_left: float, text: str) -> str:
    """Return one line: a bar, the progress in per cent, the time left, and the text."""
    share = min(max(done, 0.0), 1.0)
    filled = int(share * _WIDTH)
    minutes, seconds = divmod(max(0, round(seconds_left)), 60)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}, {minutes}:{seconds:02d} left: {text}"
