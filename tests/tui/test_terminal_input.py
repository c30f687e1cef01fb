"""The input of a terminal is read on arrival, whatever its bytes, and the reader ends on request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

import pytest
from textual.events import Key, MouseDown, Paste
from textual.message import Message
from watchroom_tui.terminal.input import SelectableEvent, read_input

PATIENCE = 20


class Reader:
    """A reader in a thread, for the bytes written with `send`."""

    def __init__(self, encoding: str, exit_event: SelectableEvent | None = None) -> None:
        self.exit_event = exit_event or SelectableEvent()
        self._events: Queue[Message] = Queue()
        self._descriptor, self._writer = os.pipe()
        arguments = (self._descriptor, encoding, self.exit_event, self._events.put)
        self._thread = Thread(target=read_input, args=arguments)
        self._thread.start()

    def send(self, data: bytes) -> None:
        os.write(self._writer, data)

    def hang_up(self) -> None:
        os.close(self._writer)
        self._writer = -1

    def next_event(self) -> Message:
        return self._events.get(timeout=PATIENCE)

    def next_key(self) -> str:
        event = self.next_event()
        assert isinstance(event, Key)
        return event.key

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert self.has_ended

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        self.exit_event.set()
        self.join()
        self.exit_event.close()
        for each in (self._descriptor, self._writer):
            if each >= 0:
                os.close(each)


@contextmanager
def reader(encoding: str = "utf-8") -> Iterator[Reader]:
    begun = Reader(encoding)
    try:
        yield begun
    finally:
        begun.end()


def test_keys_the_mouse_and_pasted_text_are_events() -> None:
    with reader() as terminal:
        terminal.send(b"a\x1b[A\x1b[<0;3;4M\x1b[200~two\nlines\x1b[201~")
        assert [terminal.next_key(), terminal.next_key()] == ["a", "up"]
        pressed, pasted = terminal.next_event(), terminal.next_event()
        assert isinstance(pressed, MouseDown)
        assert (pressed.x, pressed.y) == (2, 3)
        assert isinstance(pasted, Paste)
        assert pasted.text == "two\nlines"


def test_a_lone_escape_is_a_key_each_time() -> None:
    with reader() as terminal:
        for _ in range(2):
            terminal.send(b"\x1b")
            assert terminal.next_key() == "escape"


@pytest.mark.parametrize(
    ("encoding", "data", "characters"),
    [
        ("utf-8", b"\xff", "\N{REPLACEMENT CHARACTER}"),
        ("utf-8", "漢".encode(), "漢"),
        ("latin-1", b"\xe9", "é"),
        ("ascii", b"\xe9", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_any_byte_is_a_character(encoding: str, data: bytes, characters: str) -> None:
    with reader(encoding) as terminal:
        for each in data:
            # A character may arrive in parts.
            terminal.send(bytes((each,)))
        event = terminal.next_event()
        assert isinstance(event, Key)
        assert event.character == characters


def test_a_terminal_that_hung_up_is_not_read_again_and_the_reader_still_ends() -> None:
    with reader() as terminal:
        terminal.send(b"a")
        assert terminal.next_key() == "a"
        terminal.hang_up()
        assert not terminal.has_ended


def test_the_event_can_be_set_and_cleared_more_than_once() -> None:
    event = SelectableEvent()
    for _ in range(2):
        event.set()
        event.set()
        assert event.is_set()
        event.clear()
        event.clear()
        assert not event.is_set()
        with pytest.raises(BlockingIOError):
            os.read(event.fileno(), 1)
    for _ in range(2):
        event.close()
        event.set()


def test_both_readers_end_although_only_one_is_joined() -> None:
    """As in a process that was resumed without being stopped."""
    exit_event = SelectableEvent()
    first, second = Reader("utf-8", exit_event), Reader("utf-8", exit_event)
    exit_event.set()
    second.join()
    exit_event.clear()
    exit_event.close()
    first.join()


def test_a_terminal_that_is_gone_is_not_an_error() -> None:
    controller, terminal = os.openpty()
    exit_event = SelectableEvent()
    thread = Thread(target=read_input, args=(terminal, "utf-8", exit_event, lambda event: None))
    thread.start()
    os.close(controller)
    exit_event.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    exit_event.close()
    os.close(terminal)
