"""Agents that a person stopped together, to let exactly these go on again.

Who is stopped is the newest version of one path, so it is known after a restart too, to all who look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from watchroom.errors import InvalidAgentId, SessionNotFound, UnknownAgent, WatchroomError
from watchroom.journal.topics import messages_to
from watchroom.model import PAUSE, RELEASE_AGENTS, RESUME, STOP_AGENTS, Json, Row, Write, Zone
from watchroom.rules.stops import STOPPED_PATH, stopped_by
from watchroom.zones.sessions import SessionZone
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"


class StopZone:
    """Who is stopped, as rows in ``store``; ``sessions`` are told."""

    def __init__(self, store: Store, sessions: SessionZone) -> None:
        self._store = store
        self._sessions = sessions

    def stop(self, actor: str, agents: Iterable[str]) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents``, for ``actor``, and remember them as stopped. Returns by agent the
        row that told it, and why one could not be told. Raises `JournalError`."""
        told: dict[str, int] = {}
        refused: dict[str, WatchroomError] = {}
        for agent in agents:
            try:
                told[agent] = self._sessions.control(actor, PAUSE, agent, None, "").seq
            except (InvalidAgentId, UnknownAgent, SessionNotFound) as error:
                refused[agent] = error
        if told:
            self._write(actor, STOP_AGENTS, told, ())
        return told, refused

    def release(self, actor: str) -> Mapping[str, int]:
        """Have those go on, for ``actor``, that were stopped and that nobody resumed since. Returns by agent
        the row that told it. Raises `JournalError`."""
        stopped = self.stopped()
        told = {agent: self._sessions.control(actor, RESUME, agent, None, "").seq for agent in stopped}
        if told:
            self._write(actor, RELEASE_AGENTS, {}, told)
        return told

    def stopped(self) -> Mapping[str, int]:
        """The agents that are stopped, each with the row that told it; without those that somebody resumed.
        Raises `JournalError`."""
        head = self._store.journal.head(ZONE, STOPPED_PATH)
        known = self._store.registry.current().agents
        return {
            agent: row
            for agent, row in (stopped_by(head) if head is not None else {}).items()
            if agent in known and not self._was_resumed(agent, row)
        }

    def _was_resumed(self, agent: str, row: int) -> bool:
        said = self._store.journal.topic(messages_to("session", agent), after=row)
        return any(each.tool == RESUME for each in said)

    def _write(self, actor: str, tool: str, told: Mapping[str, int], gone: Iterable[str]) -> Row:
        released = set(gone)
        while True:
            head = self._store.journal.head(ZONE, STOPPED_PATH)
            before = stopped_by(head) if head is not None else {}
            agents: dict[str, Json] = {
                agent: row for agent, row in {**before, **told}.items() if agent not in released
            }
            version = (head.version or 0) if head is not None else 0
            draft = Write(
                *(actor, tool, ZONE, STOPPED_PATH, ""),
                message=", ".join(released or told)[:200],
                expected=version,
                detail={"agents": agents},
            )
            row = self._store.write(draft).row
            if row.outcome == "ok":
                return row
