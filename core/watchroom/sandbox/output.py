"""What comes from a command: above all what it prints, read to the end, kept up to a cap."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, str], None]

_AT_ONCE: Final = 256 * 1024


class Source(Protocol):
    """Something that comes from a command. Read it whenever there is something; it never waits."""

    fd: int

    def read(self) -> bool:
        """Take what is there. False if there will be no more."""
        ...


class Line:
    """Where the command asks whether it may begin, and is told that it may."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self) -> bool:
        # Who asked may be killed before it is answered; its end is seen elsewhere.
        with contextlib.suppress(ConnectionError):
            if os.read(self.fd, 1):
                os.write(self.fd, b"\n")
        return False


class Output:
    """One stream of what it prints."""

    def __init__(self, stream: Stream, fd: int, most: int, on_output: OnOutput | None) -> None:
        self.fd = fd
        self.cut = False
        os.set_blocking(fd, False)
        self._stream: Stream = stream
        self._room = most
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []

    def read(self) -> bool:
        """Take what is there. False at the end of the stream."""
        try:
            data = os.read(self.fd, _AT_ONCE)
        except BlockingIOError:
            return True
        kept = data[: self._room]
        self._room -= len(kept)
        self._take(self._decoder.decode(kept))
        if len(kept) < len(data):
            self.cut = True
        return bool(data)

    def finish(self) -> str:
        """All that was kept. Half a character at the cap is left out, one at the end is shown as broken."""
        if not self.cut:
            self._take(self._decoder.decode(b"", final=True))
        return "".join(self._texts)

    def _take(self, text: str) -> None:
        if text:
            self._texts.append(text)
            if self._on_output:
                self._on_output(self._stream, text)


def drained(fd: int) -> bytes:
    """What stands in a pipe now."""
    data = b""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(fd, _AT_ONCE):
            data += piece
    return data
