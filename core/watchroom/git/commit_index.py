"""Which commit a row became: in this stream a mark, before it an id that the repository tells."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

from watchroom.git.process import Repository
from watchroom.git.stream import ROW, parse_rows

_FORMAT: Final = f"%H %(trailers:key={ROW},valueonly,separator=%x20)"


class CommitIndex:
    """The commits of ``repository`` up to ``head`` (empty: none), and those of the stream, most of rows after
    ``until``."""

    def __init__(self, repository: Repository, head: str, until: int) -> None:
        self._repository = repository
        self._head = head
        self._until = until
        self._marks = array("q")
        """By the row, counted from ``until``; 0 of those that are in no commit of the stream."""
        self._opened: dict[int, int] = {}
        self._earlier: _Earlier | None = None

    def add(self, row: int, mark: int) -> None:
        """Remember that ``row`` is in the commit called ``mark``."""
        place = row - self._until
        if place < 0:
            self._opened[row] = mark
            return
        self._marks.extend([0] * (place + 1 - len(self._marks)))
        self._marks[place] = mark

    def find(self, row: int) -> str:
        """The mark or id of the commit that has ``row``, empty where none has. Raises `GitError`."""
        place = row - self._until
        mark = self._marks[place] if 0 <= place < len(self._marks) else self._opened.get(row, 0)
        if mark:
            return f":{mark}"
        if not self._head:
            return ""
        if self._earlier is None:
            self._earlier = _Earlier(self._repository.read("log", f"--format={_FORMAT}", self._head, "--"))
        return self._earlier.find(row)


class _Earlier:
    """The commits that ``listing`` names, each line an id and its rows."""

    def __init__(self, listing: bytes) -> None:
        spans = []
        self._ids = bytearray()
        self._length = listing.find(b" ") // 2
        for number, line in enumerate(listing.splitlines()):
            commit, _, rows = line.decode("ascii", "replace").partition(" ")
            self._ids += bytes.fromhex(commit)
            spans += [(first, last, number) for first, last in parse_rows(rows)]
        spans.sort()
        self._firsts = array("q", (first for first, _, _ in spans))
        self._lasts = array("q", (last for _, last, _ in spans))
        self._numbers = array("q", (number for _, _, number in spans))

    def find(self, row: int) -> str:
        place = bisect_right(self._firsts, row) - 1
        if place < 0 or self._lasts[place] < row:
            return ""
        start = self._numbers[place] * self._length
        return self._ids[start : start + self._length].hex()
