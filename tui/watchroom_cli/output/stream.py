"""Standard output and error of commands: safe for a terminal, and a failed write does not end a command.

JSON and messages repeat what agents and callers wrote. In a pipe they stay as they are, for programs; in a
terminal a control, bidirectional or zero-width character becomes its escape (``\\u202e``), as in JSON.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, TextIO, cast

from watchroom_tui.presentation.charset import json_escape, terminal_charset
from watchroom_tui.presentation.sanitize import INVISIBLE
from watchroom_tui.terminal.session import is_hung_up

_KEPT: Final = "\n\t\u00a0\u3000"
"""What is not printable for Python, and yet does nothing but leave space."""


class _Escapes(dict[int, str]):
    """A translation table that works out how to show a character when it first meets it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_seen = character.isprintable() and not INVISIBLE.match(character)
        shown = character if is_seen or character in _KEPT else json_escape(character)
        self[code] = shown
        return shown


_ESCAPES: Final = _Escapes()


def escape_invisible(text: str) -> str:
    """``text`` with every character that a terminal obeys or does not show as ``\\uXXXX``; a character above
    U+FFFF as two, as in JSON."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


class OutputStream(io.TextIOBase):
    """Standard output or error of a command.

    A write that fails (the reader has gone, the disk is full) does not end the command, which may have acted
    already: the failure is kept, and nothing more is written. Text for a terminal goes through
    `escape_invisible`, and characters that the terminal cannot show are replaced.
    """

    def __init__(self, stream: TextIO, *, is_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self.failure: OSError | None = None
        """Why the first failed write failed."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read only, as that of every stream
        return self._stream.encoding

    @property
    def buffer(self) -> BinaryIO:
        """The bytes below, for servers whose protocol uses standard output."""
        return self._stream.buffer

    def write(self, text: str) -> int:
        if self.failure is None:
            try:
                self._stream.write(self._shown(text) if self._is_terminal else text)
            except OSError as error:
                self.failure = error
        return len(text)

    def flush(self) -> None:
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as error:
                self.failure = error

    def discard(self) -> None:
        """Drop what is still buffered after a failure: Python writes it once more at exit, and complains."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def _shown(self, text: str) -> str:
        charset, visible = terminal_charset(), escape_invisible(text)
        return visible if charset is None else charset.escape(visible)


def is_output_lost() -> bool:
    """Return whether nobody reads standard output any more, or it cannot be written."""
    has_failed = isinstance(sys.stdout, OutputStream) and sys.stdout.failure is not None
    return has_failed or is_hung_up(sys.stdout)


@contextmanager
def command_output() -> Iterator[OutputStream]:
    """While this lasts, standard output and error are `OutputStream`s. Yields standard output. The dashboard
    draws on the terminal itself."""
    before = sys.stdout, sys.stderr
    output, errors = (OutputStream(each, is_terminal=_is_terminal(each)) for each in before)
    sys.stdout, sys.stderr = cast("TextIO", output), cast("TextIO", errors)
    try:
        yield output
    finally:
        for stream in (output, errors):
            stream.flush()
            if stream.failure is not None:
                stream.discard()
            # Or its finalizer flushes a stream that may be closed by then, which Python 3.13 reports.
            stream.close()
        sys.stdout, sys.stderr = before


def _is_terminal(stream: TextIO) -> bool:
    return isinstance(stream, io.TextIOWrapper) and stream.isatty()
