"""What a command prints, on its way to becoming rows."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Timer
from typing import Final

from watchroom.sandbox.output import Stream

_EVERY: Final = 0.1
"""What is printed becomes a row at most once in so many seconds."""


class OutputBatcher:
    """Gathers what a command prints, so that it makes few rows and none comes late. ``tell`` is called with
    each stream and text, at most some ten times a second, from another thread."""

    def __init__(self, tell: Callable[[Stream, str], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._pieces: list[tuple[Stream, str]] = []
        self._timer: Timer | None = None

    def write(self, stream: Stream, text: str) -> None:
        # A journal keeps no NUL.
        """Add a ``text`` that the command printed on ``stream``."""
        piece = text.replace("\0", "␀")
        with self._lock:
            if self._pieces and self._pieces[-1][0] == stream:
                piece = self._pieces.pop()[1] + piece
            self._pieces.append((stream, piece))
            if self._timer is None:
                self._timer = Timer(_EVERY, self._flush)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Hand on what is left."""
        with self._lock:
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            pieces, self._pieces, self._timer = self._pieces, [], None
        for stream, text in pieces:
            self._tell(stream, text)
