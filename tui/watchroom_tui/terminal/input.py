"""Input from the terminal, without waking up while there is no input."""

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

from watchroom_tui.textual_compat import make_xterm_parser

_MAX_BYTES: Final = 4096
"""Maximum bytes to read at once."""
_TICK_SECONDS: Final = 0.1
"""Seconds between checks of whether an escape is a key or the start of a sequence."""


class SelectableEvent(Event):
    """An event for selectors: its descriptor is readable while the event is set, and after the event is
    closed."""

    def __init__(self) -> None:
        super().__init__()
        self._writer: int | None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        # The finalizer closes the reader, because threads can still wait for it after `close`.
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
            os.read(self._reader, _MAX_BYTES)

    def close(self) -> None:
        """Wake all waiting threads, permanently. Repeated calls are allowed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            os.close(writer)


def read_input(
    descriptor: int, encoding: str, exit_event: SelectableEvent, handle: Callable[[Message], None]
) -> None:
    """Read keys, mouse events and pasted text until ``exit_event`` is set or closed.

    - ``descriptor``: the descriptor of the terminal.
    - ``encoding``: the encoding of the input. Invalid bytes are replaced.
    - ``exit_event``: the event that ends the function at once.
    - ``handle``: callback for each event, called in this thread.

    Raise OSError if the terminal cannot be read.
    """
    parser = make_xterm_parser()
    decoder = getincrementaldecoder(encoding)("replace")
    # Before this time the parser may wait for the rest of a sequence.
    settled_at = 0.0
    with DefaultSelector() as selector:
        selector.register(descriptor, EVENT_READ)
        selector.register(exit_event, EVENT_READ)
        while not exit_event.is_set():
            timeout = _TICK_SECONDS if monotonic() < settled_at else None
            ready = {key.fd for key, _ in selector.select(timeout)}
            if exit_event.fileno() in ready:
                # The event can be cleared again, because a process resumed by SIGCONT has two such threads.
                break
            if descriptor in ready:
                data = _read(descriptor)
                if not data:
                    # The other end was closed, so the descriptor would be readable forever.
                    selector.unregister(descriptor)
                # A partial character decodes to an empty text, which means the end to the parser.
                text = decoder.decode(data)
                for event in parser.feed(text) if text else ():
                    handle(event)
                settled_at = monotonic() + ESCAPE_DELAY + _TICK_SECONDS
            for event in parser.tick():
                handle(event)


def _read(descriptor: int) -> bytes:
    """Return the next bytes of the input, empty if the other end is closed."""
    try:
        return os.read(descriptor, _MAX_BYTES)
    except OSError as error:
        if error.errno != EIO:
            raise
        return b""
