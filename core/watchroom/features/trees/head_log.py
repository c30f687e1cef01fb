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
        self._size = self._find_size()

    def _find_size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def read(self, head: str) -> list[HeadMove]:
        """Return the moves since the last call up to the newest move to the commit ``head``, oldest first.
        Later calls return the rest. Empty if git keeps no log, or has shortened it."""
        try:
            with open(self._path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._size = min(size, max(self._size, size - _MAX_BYTES))
                file.seek(self._size)
                lines = file.read(size - self._size).splitlines(keepends=True)
        except OSError:
            return []
        moves = [_parse(line) for line in lines]
        count = max((number for number, move in enumerate(moves, 1) if move and move.new == head), default=0)
        self._size += sum(map(len, lines[:count]))
        return [move for move in moves[:count] if move is not None]


def _parse(line: bytes) -> HeadMove | None:
    head, _, action = line.partition(b"\t")
    ids = head.split(b" ", 2)[:2]
    if len(ids) < 2 or not all(each.isalnum() for each in ids):
        return None
    old, new = (each.decode("ascii", "replace") for each in ids)
    return HeadMove(old, new, action.startswith(b"commit"))
