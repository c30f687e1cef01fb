"""`Notifications`: new handoffs and settled conflicts, for agents that ask between two tool calls."""

from __future__ import annotations

from typing import Final

from watchroom.features.config.store import Store
from watchroom.features.conflicts.service import Conflicts
from watchroom.kernel.journal.topics import SETTLED, deliveries_to
from watchroom.kernel.zones import DELIVERED
from watchroom.model import Note, Row

NOTIFY: Final = "tell_news"
_MAX_UNNOTED: Final = 100
"""Maximum number of rows for others that are read again at the next request. After more rows, a note records
the position."""


class Notifications:
    """The rows that agents have not been notified of yet. Each row is returned once. May be used from any
    thread.

    - ``store``: the journal.
    - ``conflicts``: finds the agent whose conflict a row settled.
    """

    def __init__(self, store: Store, conflicts: Conflicts) -> None:
        self._store = store
        self._conflicts = conflicts

    def fetch(self, agent: str) -> list[Row]:
        """Return the new rows for ``agent``, oldest first, and only the newest row of each path.

        If several processes ask at once, one of them gets the rows. Raise `UnknownAgent`.
        """
        agent = self._store.registry.agent(agent).id
        while True:
            notice = self._last_notice(agent)
            after = (notice.base or 0) if notice else 0
            last = self._store.journal.last_seq()
            rows = self._since(agent, after, last)
            found = self._found(agent, rows)
            if not found and len(rows) < _MAX_UNNOTED:
                return []
            note = Note(agent, NOTIFY, "workspace", agent, base=last, detail={"rows": len(found)})
            with self._store.journal.exclusive(f"notifications/{agent}"):
                # Clients call several tools at once, and each call asks. Another call may have been first.
                if self._last_notice(agent) == notice:
                    self._store.commits.commit(note)
                    return found

    def _last_notice(self, agent: str) -> Row | None:
        return self._store.journal.last_note("workspace", agent, agent, NOTIFY)

    def _since(self, agent: str, after: int, last: int) -> list[Row]:
        """Return the rows with after < seq ≤ last that may concern the agent, oldest first."""
        journal = self._store.journal
        topics = (deliveries_to(agent), SETTLED)
        rows = (row for topic in topics for row in journal.topic(topic, after=after, until=last))
        return sorted(rows, key=lambda row: row.seq)

    def _found(self, agent: str, rows: list[Row]) -> list[Row]:
        found: dict[tuple[str, str], Row] = {}
        for row in rows:
            if self._concerns(row, agent):
                found.pop((row.zone, row.path), None)
                found[row.zone, row.path] = row
        return list(found.values())

    def _concerns(self, row: Row, agent: str) -> bool:
        if row.actor == agent:
            return False
        return row.zone in DELIVERED or self._conflicts.settles_conflict_of(row, agent)
