"""A parser of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from watchroom.errors import ModelFailed

LONGEST_LINE: Final = 32 * 1024 * 1024
"""Maximum bytes of a line. A tool call with a file of 10 MB is one line, with arguments that are escaped
twice."""

_BOM: Final = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """An event. ``name`` is empty if the server sent none."""

    name: str
    data: str


class EventParser:
    """Parses server-sent events. Call `feed` with all bytes in order, and `close` at the end.

    ``longest_line``: maximum bytes of a line, and of all lines of one event. A longer line or event raises
    `ModelFailed`.
    """

    def __init__(self, longest_line: int = LONGEST_LINE) -> None:
        self._longest = longest_line
        self._rest = bytearray()
        self._after_cr = False
        self._at_start = True
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that end in ``data``. Raise `ModelFailed`."""
        for line in self._split_lines(data):
            self._check_size(len(line))
            if self._at_start:
                self._at_start = False
                line = line.removeprefix(_BOM)
            if line:
                self._parse_line(line)
            else:
                yield from self._flush_event()
        self._check_size(len(self._rest))

    def close(self) -> Iterator[ServerSentEvent]:
        """Yield the last event if the empty line after it is missing, as with some servers. A partial line is
        dropped."""
        yield from self._flush_event()

    def _split_lines(self, data: bytes) -> list[bytes]:
        """Return the lines that end in ``data``."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._rest += lines[0]
        if len(lines) == 1:
            return []
        lines[0] = bytes(self._rest)
        self._rest = bytearray(lines.pop())
        return lines

    def _check_size(self, size: int) -> None:
        if size > self._longest:
            raise ModelFailed(rule="line_too_long", limit=self._longest)

    def _parse_line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field not in _FIELDS:
            return
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"event":
            self._name = text
            return
        if field == b"error":
            self._name = "error"
        self._size += len(value)
        self._check_size(self._size)
        self._data.append(text)

    def _flush_event(self) -> Iterator[ServerSentEvent]:
        name, data = self._name, "\n".join(self._data)
        self._name, self._data, self._size = "", [], 0
        if data:
            yield ServerSentEvent(name, data)


# Builds of llama.cpp before September 2025 report a failure in a field ``error`` of their own.
_FIELDS: Final = frozenset({b"data", b"event", b"error"})
