"""The writes to a disk in order, and the part of them that a power loss leaves."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_HEADER: Final = struct.Struct("=QI")
_FLUSH: Final = 2**64 - 1
SECTOR: Final = 512
"""Bytes that a disk writes completely or not at all."""


class Entry(NamedTuple):
    """A write of ``data`` at ``offset``, or a flush if ``offset`` is None. Writes before a flush are durable.

    ``position``: the length of the log after the entry.
    """

    position: int
    offset: int | None
    data: bytes


class WriteLog:
    """The log at ``path``, to write to. Other processes can read an entry when its call has returned."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add_write(self, offset: int, data: bytes) -> None:
        """Add a write of ``data`` at ``offset``."""
        os.writev(self._file, (_HEADER.pack(offset, len(data)), data))

    def add_flush(self) -> None:
        """Add a flush."""
        os.write(self._file, _HEADER.pack(_FLUSH, 0))


def read_log(path: Path) -> Iterator[Entry]:
    """Yield the entries of the log at ``path``, in order."""
    with path.open("rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            offset, length = _HEADER.unpack(header)
            data = file.read(length)
            yield Entry(file.tell(), None if offset == _FLUSH else offset, data)


def positions_before_flushes(path: Path, begin: int) -> list[int]:
    """Return the positions of the log at ``path`` from ``begin`` on before which writes are followed by a
    flush. There most can be lost."""
    found, last = [], None
    for each in read_log(path):
        if each.offset is None and last is not None and last > begin:
            found.append(last)
        last = None if each.offset is None else each.position
    return found


class CutWrites(NamedTuple):
    """The effect of a power loss on the writes after the last flush: numbers of kept, lost and torn ones."""

    kept: int = 0
    lost: int = 0
    torn: int = 0


class Replay:
    """The disk as a log made it, at increasing positions.

    - ``image``: the disk at the beginning. It is changed to the durable content.
    - ``log``: the log of its writes.
    """

    def __init__(self, image: Path, log: Path) -> None:
        self._image = image
        self._entries = read_log(log)
        self._unflushed: list[Entry] = []
        self._next: Entry | None = next(self._entries, None)

    def advance(self, position: int) -> None:
        """Advance to ``position`` of the log, at least the last one."""
        with self._image.open("r+b") as disk:
            while self._next is not None and self._next.position <= position:
                if self._next.offset is None:
                    for each in self._unflushed:
                        _write(disk.fileno(), each)
                    self._unflushed.clear()
                else:
                    self._unflushed.append(self._next)
                self._next = next(self._entries, None)

    def cut(self, disk: Path, chance: random.Random) -> CutWrites:
        """Let the power fail here, on ``disk``, a copy of the image.

        The writes since the last flush are all lost, or a prefix is kept, or any of them in any order, some
        of them torn.
        """
        writes = list(self._unflushed)
        how = chance.choice(("none", "prefix", "any", "any"))
        if how == "none":
            return CutWrites(lost=len(writes))
        if how == "prefix":
            kept = writes[: chance.randint(0, len(writes))]
        else:
            share = chance.random()
            kept = [each for each in writes if chance.random() < share]
            chance.shuffle(kept)
        torn = 0
        with disk.open("r+b") as file:
            for each in kept:
                if how == "any" and len(each.data) > SECTOR and chance.random() < 0.1:
                    torn += 1
                    for sector in _some_sectors(each, chance):
                        _write(file.fileno(), sector)
                else:
                    _write(file.fileno(), each)
        return CutWrites(len(kept) - torn, len(writes) - len(kept), torn)


def _some_sectors(write: Entry, chance: random.Random) -> Iterator[Entry]:
    if write.offset is not None:
        for start in range(0, len(write.data), SECTOR):
            if chance.random() < 0.5:
                data = write.data[start : start + SECTOR]
                yield Entry(write.position, write.offset + start, data)


def _write(disk: int, entry: Entry) -> None:
    if entry.offset is not None:
        os.pwrite(disk, entry.data, entry.offset)
