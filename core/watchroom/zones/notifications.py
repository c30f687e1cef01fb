"""What has come for an agent since the last notice: handoffs, and conflicts that people settled."""

from __future__ import annotations

from typing import Final

from watchroom.journal.topics import SETTLED, deliveries_to
from watchroom.model import Note, Row
from watchroom.zones.conflict_settlement import ConflictSettlement
from watchroom.zones.store import Store

NOTIFY: Final = "tell_news"
_MOST_LOOKED_THROUGH: Final = 100


class Notifications:
    """What has come for agents, of which each is told once: ``store`` has the journal, ``conflicts`` knows
    whose conflict was settled. May be used from any thread."""

    def __init__(self, store: Store, conflicts: ConflictSettlement) -> None:
        self._store = store
        self._conflicts = conflicts

    def fetch(self, agent: str) -> list[Row]:
        """The rows that ``agent`` should hear of, oldest first, of each path the newest; each is given once,
        to whichever process asks. How far was looked is noted now and then where nothing was found, too: else
        what is for others would be read again after each tool. Raises `UnknownAgent`."""
        agent = self._store.registry.agent(agent).id
        while True:
            notice = self._last_notice(agent)
            after = (notice.base or 0) if notice else 0
            last = self._store.journal.last_seq()
            rows = self._since(agent, after, last)
            found = self._found(agent, rows)
            if not found and len(rows) < _MOST_LOOKED_THROUGH:
                return []
            note = Note(agent, NOTIFY, "workspace", agent, base=last, detail={"rows": len(found)})
            with self._store.journal.exclusive(f"notifications/{agent}"):
                # Clients ask for several tools at once; who was first has notice it.
                if self._last_notice(agent) == notice:
                    self._store.commits.commit(note)
                    return found

    def _last_notice(self, agent: str) -> Row | None:
        return self._store.journal.last_note("workspace", agent, agent, NOTIFY)

    def _since(self, agent: str, after: int, last: int) -> list[Row]:
        """What may concern the agent of the rows with after < seq ≤ last, oldest first."""
        journal = self._store.journal
        topics = (deliveries_to(agent), SETTLED)
        rows = (row for topic in topics for row in journal.topic(topic, after=after, until=last))
        return sorted(rows, key=lambda row: row.seq)

    def _found(self, agent: str, rows: list[Row]) -> list[Row]:
        found: dict[tuple[str, str], Row] = {}
        for row in rows:
            if self._concerns(row, agent):
                # Of a file only what it is now counts.
                found.pop((row.zone, row.path), None)
                found[row.zone, row.path] = row
        return list(found.values())

    def _concerns(self, row: Row, agent: str) -> bool:
        if row.actor == agent:
            return False
        return row.zone == "handoff" or self._conflicts.settles_conflict_of(row, agent)
