"""Counts the open requests of an agent, at a cost that does not grow with the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.features.requests.rows import ZONE, has_expired
from watchroom.kernel.journal import Journal
from watchroom.model import Row, Zone

MAX_NEW_ROWS: Final = 2000
"""Maximum number of rows that one search reads."""


class _Known(NamedTuple):
    """The open requests as of the row ``seq``."""

    seq: int
    paths: frozenset[str]


class OpenRequests:
    """The open requests in ``journal``.

    They are remembered for each agent, so that a search reads only the rows since the last search, at most
    `MAX_NEW_ROWS`. A request that another process opened before these rows is not found. Not thread-safe for
    the same agent.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, _Known] = {}

    def count(self, agent: str, most: int, counts: Callable[[Row], bool]) -> int:
        """Return the number of open requests of ``agent`` whose deadline has not passed.

        - ``most``: a lower number may include requests that do not count.
        - ``counts``: whether people can answer a request. A request that they cannot answer is forgotten.

        Raise `JournalError`.
        """
        seq, folder, now = self._journal.last_seq(), f"{agent}/", self._journal.now()
        known = self._known.get(agent, _Known(0, frozenset()))
        changed = self._journal.changed_paths(max(known.seq, seq - MAX_NEW_ROWS), seq, zones=(ZONE,))
        new = (each.path for each in changed if each.path.startswith(folder))
        paths: list[tuple[Zone, str]] = [(ZONE, path) for path in sorted(known.paths.union(new))]
        heads = (head for head in self._journal.heads_of(paths) if head is not None and head.version == 1)
        found = [head for head in heads if not has_expired(_deadline(head), now)]
        if len(found) >= most:
            found = [head for head in found if counts(head)]
        self._known[agent] = _Known(seq, frozenset(head.path for head in found))
        return len(found)


def _deadline(asked: Row) -> int | None:
    expires = asked.detail.get("expires")
    return expires if isinstance(expires, int) else None
