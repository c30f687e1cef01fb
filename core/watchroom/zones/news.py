"""What has come for an agent since it was last told: handoffs, messages, conflicts that people settled."""

from __future__ import annotations

from typing import Final

from watchroom.model import MESSAGE, RESOLVE, SETTLING_NOTES, Note, Row
from watchroom.tree.layout import split_handoff
from watchroom.zones.settling import Settling
from watchroom.zones.store import Store

TELL: Final = "tell_news"
_PAGE: Final = 1000


class News:
    """May be used from any thread."""

    def __init__(self, store: Store, settling: Settling) -> None:
        self._store = store
        self._settling = settling

    def take(self, agent: str) -> list[Row]:
        """The rows that the agent should hear of, oldest first, of each path the newest; each is told once,
        in whichever process. How far was looked is noted now and then where nothing was found, too: else it
        would all be read again after each tool. Raises `UnknownAgent`."""
        agent = self._store.registry.agent(agent).id
        while True:
            told = self._told(agent)
            after = (told.base or 0) if told else 0
            last = self._store.journal.last_seq()
            found = self._found(agent, after, last)
            if not found and last - after < _PAGE:
                return []
            note = Note(agent, TELL, "workspace", agent, base=last, detail={"rows": len(found)})
            with self._store.committer.exclusively() as commit:
                # Clients ask for several tools at once; who was first has told it.
                if self._told(agent) == told:
                    commit(note)
                    return found

    def _told(self, agent: str) -> Row | None:
        return self._store.journal.last_note("workspace", agent, agent, TELL)

    def _found(self, agent: str, after: int, last: int) -> list[Row]:
        found: dict[tuple[str, str, int], Row] = {}
        while rows := self._store.journal.rows(after, until=last, limit=_PAGE):
            after = rows[-1].seq
            for row in rows:
                if self._concerns(row, agent):
                    # Of a message each counts; of a file only what it is now.
                    key = (row.zone, row.path, row.seq if row.zone == "agent" else 0)
                    found.pop(key, None)
                    found[key] = row
        return list(found.values())

    def _concerns(self, row: Row, agent: str) -> bool:
        if row.outcome != "ok" or row.actor == agent:
            return False
        if row.zone == "handoff":
            return row.version is not None and not row.deleted and split_handoff(row.path)[1] == agent
        if row.zone == "agent":
            return row.tool == MESSAGE and row.path == agent
        return row.tool in (RESOLVE, *SETTLING_NOTES) and self._settling.concerns(row, agent)
