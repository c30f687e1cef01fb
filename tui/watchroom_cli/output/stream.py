"""Standard output and error of commands: safe for a terminal, and without errors on failed writes.

JSON and messages contain texts of agents and callers. A pipe gets them unchanged, for programs. A terminal
gets control, bidirectional and zero-width characters as escapes (``\\u202e``), as in JSON.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

from watchroom_tui.presentation.charset import terminal_charset
from watchroom_tui.presentation.sanitize import escape_invisible
from watchroom_tui.terminal.session import is_hung_up


class OutputStream(io.TextIOBase):
    """Standard output or error of a command.

    A failed write (closed pipe, full disk) does not end the command, which may already have acted. The
    failure is kept, and nothing more is written. Text for a terminal goes through `escape_invisible`.
    Characters that the terminal cannot show are replaced.
    """

    def __init__(self, stream: TextIO, *, is_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self.failure: OSError | None = None
        """The error of the first failed write or flush, None if none failed."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only, as in other streams
        return self._stream.encoding

    @property
    def buffer(self) -> BinaryIO:
        """The binary stream, for servers whose protocol uses standard output."""
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
        """Drop the buffered output after a failure. Otherwise Python would write it at exit and print an
        error."""
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
        return visible if charset is None else charset.replace(visible)


def is_output_lost() -> bool:
    """Return whether standard output has lost its reader or failed."""
    has_failed = isinstance(sys.stdout, OutputStream) and sys.stdout.failure is not None
    return has_failed or is_hung_up(sys.stdout)


@contextmanager
def command_output() -> Iterator[OutputStream]:
    """Replace standard output and error with `OutputStream`s until the context ends. Yields standard output.
    The dashboard does not use them, because it draws on the terminal directly."""
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
            # Without this the finalizer may flush a closed stream, which Python 3.13 reports.
            stream.close()
        sys.stdout, sys.stderr = before


def _is_terminal(stream: TextIO) -> bool:
    return isinstance(stream, io.TextIOWrapper) and stream.isatty()
