"""Which versions become one commit when each session has its own. Pure.

A session's commit is made when it ends, or before another writes one of its paths, so that every path has its
versions in order. What is decided depends on the rows alone, never on when an export began or ended.
"""

from __future__ import annotations

from typing import Final

from watchroom.model import ENDED, Row
from watchroom.rules.details import session_status

MOST_ROWS: Final = 500
"""A group with so many versions is closed."""
MOST_OPEN: Final = 64
"""So many groups are open at most: then the oldest one is closed."""


def session_of(row: Row) -> str:
    """The session (``AGENT/SESSION``) whose call made ``row``, empty where none did."""
    call = row.detail.get("call")
    session = call.partition("/")[0] if isinstance(call, str) else ""
    return f"{row.actor}/{session}" if session else ""


class Group:
    """Versions of one session: their ``rows``, and the newest one of each path in the tree."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.rows: list[Row] = []
        self.heads: dict[str, Row] = {}
        self._folders: set[str] = set()

    @property
    def first(self) -> int:
        """The number of its first row."""
        return self.rows[0].seq

    def add(self, path: str, row: Row) -> None:
        self.rows.append(row)
        self.heads[path] = row
        self._folders.update(_folders_of(path))

    def collides_with(self, path: str) -> bool:
        """Whether the group has the file at ``path``, one beneath it, or one that it would lie beneath."""
        return (
            path in self.heads
            or path in self._folders
            or any(folder in self.heads for folder in _folders_of(path))
        )


class Groups:
    """The groups that are open."""

    def __init__(self) -> None:
        self._open: dict[str, Group] = {}

    @property
    def firsts(self) -> list[int]:
        """The first rows of all, in order."""
        return sorted(group.first for group in self._open.values())

    def restore(self, session: str, path: str, row: Row) -> None:
        """Add ``row`` to the group of its ``session``, which was open."""
        self._open.setdefault(session, Group(session)).add(path, row)

    def close_before(self, session: str, path: str) -> list[Group]:
        """Take the groups out that have to be commits before ``session`` writes ``path``, oldest first."""
        found = [
            group for group in self._in_order() if group.session != session and group.collides_with(path)
        ]
        is_new = session and session not in self._open
        if is_new and len(self._open) - len(found) >= MOST_OPEN:
            found.append(next(group for group in self._in_order() if group not in found))
        return self._take(found)

    def add(self, session: str, path: str, row: Row) -> list[Group]:
        """Add ``row``; gives the groups that it completes, which are taken out. Without a session it is a
        group of its own."""
        if not session:
            alone = Group("")
            alone.add(path, row)
            return [alone]
        self.restore(session, path, row)
        group = self._open[session]
        return self._take([group]) if len(group.rows) >= MOST_ROWS else []

    def close_ended(self, row: Row) -> list[Group]:
        """Take the group of the session out that ends with ``row``."""
        ends = row.zone == "session" and row.version is not None and session_status(row) in ENDED
        return self._take([self._open[row.path]] if ends and row.path in self._open else [])

    def close_of(self, seq: int, path: str) -> list[Group]:
        """Take the group out that has row ``seq`` of ``path``."""
        return self._take(
            [
                group
                for group in self._open.values()
                if path in group.heads and any(row.seq == seq for row in group.rows)
            ]
        )

    def _in_order(self) -> list[Group]:
        return sorted(self._open.values(), key=lambda group: group.first)

    def _take(self, groups: list[Group]) -> list[Group]:
        for group in groups:
            del self._open[group.session]
        return groups


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
