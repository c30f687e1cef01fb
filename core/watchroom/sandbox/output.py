"""What a command prints: read to the end of each stream, kept up to a limit."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, str], None]
"""Is given the stream and a piece of text as it is printed."""

_READ_BYTES: Final = 256 * 1024


class StreamReader(Protocol):
    """Reads what comes from a command through the descriptor ``fd``, whenever there is something."""

    fd: int

    def read(self) -> bool:
        """Read what is there, without waiting. Returns False if there will be no more."""
        ...


class StartSignal:
    """Answers the command on ``fd``, the socket on which it asks once whether it may begin."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self) -> bool:
        # The command may be killed before it is answered; its end is noticed elsewhere.
        with contextlib.suppress(ConnectionError):
            if os.read(self.fd, 1):
                os.write(self.fd, b"\n")
        return False


class CapturedStream:
    """One output stream of a command, read from ``fd``. At most ``max_bytes`` are kept and given, as they
    come, to ``on_output`` with the name ``stream``. ``is_cut``: there was more."""

    def __init__(self, stream: Stream, fd: int, max_bytes: int, on_output: OnOutput | None) -> None:
        self.fd = fd
        self.is_cut = False
        os.set_blocking(fd, False)
        self._stream: Stream = stream
        self._bytes_left = max_bytes
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []

    def read(self) -> bool:
        """Read what is there. Returns False at the end of the stream."""
        try:
            data = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return True
        kept = data[: self._bytes_left]
        self._bytes_left -= len(kept)
        self._add(self._decoder.decode(kept))
        if len(kept) < len(data):
            self.is_cut = True
        return bool(data)

    def finish(self) -> str:
        """All that was kept. Half a character at the limit is dropped, one at the end is shown as broken."""
        if not self.is_cut:
            self._add(self._decoder.decode(b"", final=True))
        return "".join(self._texts)

    def _add(self, text: str) -> None:
        if text:
            self._texts.append(text)
            if self._on_output:
                self._on_output(self._stream, text)


def read_available(fd: int) -> bytes:
    """All bytes that can be read from the pipe ``fd`` without waiting."""
    data = b""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(fd, _READ_BYTES):
            data += piece
    return data
