"""Reads what the terminal sends, without waking while it sends nothing."""

from __future__ import annotations

import os
import weakref
from codecs import getincrementaldecoder
from collections.abc import Callable
from errno import EIO
from selectors import EVENT_READ, DefaultSelector
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.constants import ESCAPE_DELAY

if TYPE_CHECKING:
    from textual.message import Message

_MOST_BYTES: Final = 4096
"""So many are read at once."""
_TICK_SECONDS: Final = 0.1
"""So often the parser is asked whether an escape was the key of that name or begins a sequence."""


class SelectableEvent(Event):
    """An event that a selector can wait for: its descriptor can be read as long as it is set, and once it is
    closed."""

    def __init__(self) -> None:
        super().__init__()
        self._writer: int | None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        # Who still waits for it keeps it open.
        weakref.finalize(self, os.close, self._reader)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        if not self.is_set():
            super().set()
            if self._writer is not None:
                os.write(self._writer, b"1")

    def clear(self) -> None:
        if self.is_set():
            super().clear()
            os.read(self._reader, _MOST_BYTES)

    def close(self) -> None:
        """Wake all who wait, for good. May be called again."""
        writer, self._writer = self._writer, None
        if writer is not None:
            os.close(writer)


def read_input(
    descriptor: int, encoding: str, exit_event: SelectableEvent, handle: Callable[[Message], None]
) -> None:
    """Read keys, the mouse and pasted text until ``exit_event`` is set or closed.

    Args:
        descriptor: Of the terminal.
        encoding: What it sends; bytes that mean nothing in it are replaced.
        exit_event: Ends the reading at once.
        handle: Is called in this thread with each event.

    Raises:
        OSError: The terminal cannot be read.
    """
    # A module without a promise; the tests of this one say when it changes.
    from textual._xterm_parser import XTermParser

    parser = XTermParser()
    decoder = getincrementaldecoder(encoding)("replace")
    # Until then the parser may wait for the rest of a sequence.
    settled_at = 0.0
    with DefaultSelector() as selector:
        selector.register(descriptor, EVENT_READ)
        selector.register(exit_event, EVENT_READ)
        while not exit_event.is_set():
            timeout = _TICK_SECONDS if monotonic() < settled_at else None
            ready = {key.fd for key, _ in selector.select(timeout)}
            if exit_event.fileno() in ready:
                # It may be cleared already: a program that is told to go on (SIGCONT) has two such threads.
                break
            if descriptor in ready:
                data = _read(descriptor)
                if not data:
                    # Its other end was closed. It could be read for ever, to learn that again.
                    selector.unregister(descriptor)
                # Part of a character gives no text yet; to the parser, no text is the end.
                text = decoder.decode(data)
                for event in parser.feed(text) if text else ():
                    handle(event)
                settled_at = monotonic() + ESCAPE_DELAY + _TICK_SECONDS
            for event in parser.tick():
                handle(event)


def _read(descriptor: int) -> bytes:
    """What was sent; nothing where the other end is closed."""
    try:
        return os.read(descriptor, _MOST_BYTES)
    except OSError as error:
        if error.errno != EIO:
            raise
        return b""
