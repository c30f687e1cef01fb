"""Standard output and error as they are printed to a terminal: what it would obey or hide is spelled out.

JSON and messages repeat what agents and callers wrote. In a pipe they stay as they are, for programs; in a
terminal a control, bidirectional or zero-width character becomes its escape (``\\u202e``), as JSON has it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, cast

from watchroom_tui.charset import json_escape, terminal_charset
from watchroom_tui.sanitize import INVISIBLE

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


class EscapingStream(io.TextIOBase):
    """A terminal to print to, with `escape_invisible` before it, and then what replaces that which it cannot
    show."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read only, as that of every stream
        return self._terminal.encoding

    def write(self, text: str) -> int:
        charset, visible = terminal_charset(), escape_invisible(text)
        self._terminal.write(visible if charset is None else charset.escape(visible))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()

    def fileno(self) -> int:
        return self._terminal.fileno()

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def writable(self) -> bool:
        return True


@contextmanager
def escape_terminal_output() -> Iterator[None]:
    """While this lasts, what is printed to a terminal goes through an `EscapingStream`. The dashboard draws
    on the terminal itself."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_escaping(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _escaping(stream: TextIO) -> TextIO:
    # A process that was begun without them has none.
    is_terminal = isinstance(stream, io.TextIOWrapper) and stream.isatty()
    return cast("TextIO", EscapingStream(stream)) if is_terminal else stream
