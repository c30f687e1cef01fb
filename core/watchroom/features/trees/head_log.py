"""`HeadLog`: the moves of HEAD in a working tree, read from git's reflog."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

_MAX_BYTES: Final = 1_000_000
"""Maximum bytes of the log that are read at once. Older moves are unknown."""


class HeadMove(NamedTuple):
    """HEAD was moved from the commit ``old`` (zeros for none) to ``new``.

    ``is_commit``: the move was a commit of the tree's content.
    """

    old: str
    new: str
    is_commit: bool

    @property
    def is_first(self) -> bool:
        """Whether there was no commit before."""
        return not self.old.strip("0")


class HeadLog:
    """The log of HEAD in the git folder ``git`` of a tree. Reading begins at its current end."""

    def __init__(self, git: str) -> None:
        self._path = os.path.join(git, "logs", "HEAD")
        self._last = self._next = b"".join(self._read_lines()[-1:])
        """The newest line that later calls of `read` leave out, and the one after `advance`. Not offsets:
        git removes old lines, for example after a commit."""

    def _read_lines(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_BYTES))
                return file.read().splitlines()
        except OSError:
            return []

    def read(self, head: str) -> list[HeadMove]:
        """Return the moves since the last `advance` up to the newest move to the commit ``head``, oldest
        first. Empty if git keeps no log, or has removed the line before these moves."""
        lines = self._read_lines()
        known = [number for number, line in enumerate(lines, 1) if line == self._last]
        start = known[-1] if known else 0
        moves = [_parse(line) for line in lines[start:]]
        count = max((number for number, move in enumerate(moves, 1) if move and move.new == head), default=0)
        if self._last and not known:
            self._next = b"".join((lines[:count] or lines)[-1:])
            return []
        self._next = lines[start + count - 1] if count else self._last
        return [move for move in moves[:count] if move is not None]

    def advance(self) -> None:
        """Make later calls of `read` leave out the moves that the last call returned."""
        self._last = self._next


def _parse(line: bytes) -> HeadMove | None:
    head, _, action = line.partition(b"\t")
    ids = head.split(b" ", 2)[:2]
    if len(ids) < 2 or not all(each.isalnum() for each in ids):
        return None
    old, new = (each.decode("ascii", "replace") for each in ids)
    return HeadMove(old, new, action.startswith(b"commit"))
