"""A bar for what lasts: how far it is, what was done so far, and the time left."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

_WIDTH: Final = 24
_LINE_EVERY: Final = 60.0
"""Seconds between two lines, where the output is no terminal."""


class ProgressBar:
    """Redrawn in place on a terminal; elsewhere a line a minute.

    Args:
        stream: where it is drawn; standard error where it is None.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._in_place = self._stream.isatty()
        self._drawn = -_LINE_EVERY
        self._width = 0

    def show(self, done: float, seconds_left: float, text: str) -> None:
        """Draw it.

        Args:
            done: how much is done, from 0 to 1.
            seconds_left: until the end.
            text: what was done so far; one line.
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
        """Take it off the terminal, so that another line can be printed there."""
        if self._in_place:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(done: float, seconds_left: float, text: str) -> str:
    """One line: a bar, how much is done in percent, the time left, and the text."""
    share = min(max(done, 0.0), 1.0)
    filled = int(share * _WIDTH)
    minutes, seconds = divmod(max(0, round(seconds_left)), 60)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}, {minutes}:{seconds:02d} left: {text}"
