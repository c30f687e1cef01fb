"""Agents that a person stopped together, to let exactly these go on again.

Who is stopped is the newest version of one path, so it is known after a restart too, to all who look.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from typing import Final

from watchroom.errors import InvalidAgentId, SessionNotFound, UnknownAgent, WatchroomError
from watchroom.journal.topics import messages_to
from watchroom.model import PAUSE, RELEASE_AGENTS, RESUME, STOP_AGENTS, Json, Row, Write, Zone
from watchroom.rules.effects import STOPPED_PATH
from watchroom.rules.presence import presence_of
from watchroom.rules.stops import stopped_after
from watchroom.zones.sessions import SessionZone
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"
PAUSE_SECONDS: Final = 10.0
"""Within so long whoever is paused stops, or is not waited for."""
_ATTACHMENT: Final = "attachment"
"""In the detail of the first step of a session that a client of a person's has."""


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

    def wait_until_paused(self, agents: Iterable[str], seconds: float = PAUSE_SECONDS) -> list[str]:
        """Wait until no process takes a step for ``agents`` any more, ``seconds`` at most; returns those for
        which one still does. A client that a person started is not waited for: it heeds a pause at its next
        call. Raises `JournalError`."""
        journal = self._store.journal
        deadline = time.monotonic() + seconds
        heads = [head for agent in agents for head in self._sessions.heads(agent) if _takes_steps(head)]
        running = [head for head in heads if not self._is_attached(head)]
        with closing(journal.changes()) as changes:
            while True:
                newest = journal.heads_of([("session", head.path) for head in running])
                held = {each.id for each in journal.presences() if each.is_alive} if running else set()
                running = [
                    head for head in newest if head and _takes_steps(head) and presence_of(head) in held
                ]
                left = deadline - time.monotonic()
                if not running or left <= 0:
                    return sorted({head.path.partition("/")[0] for head in running})
                changes.wait(left)

    def release(self, actor: str) -> Mapping[str, int]:
        """Have those go on, for ``actor``, that were stopped and that nobody resumed since. Returns by agent
        the row that told it. Raises `JournalError`."""
        stopped = self.stopped()
        told: dict[str, int] = {}
        for agent in stopped:
            # An agent without a session has nothing to go on with.
            with suppress(SessionNotFound):
                told[agent] = self._sessions.control(actor, RESUME, agent, None, "").seq
        if stopped:
            self._write(actor, RELEASE_AGENTS, {}, stopped)
        return told

    def stopped(self) -> Mapping[str, int]:
        """The agents that are stopped, each with the row that told it; without those that somebody resumed.
        Raises `JournalError`."""
        known = self._store.registry.current().agents
        return {
            agent: row
            for agent, row in self._remembered().items()
            if agent in known and not self._was_resumed(agent, row)
        }

    def _is_attached(self, head: Row) -> bool:
        first = self._store.journal.version("session", head.path, 1)
        return first is not None and _ATTACHMENT in first.detail

    def _was_resumed(self, agent: str, row: int) -> bool:
        said = self._store.journal.topic(messages_to("session", agent), after=row)
        return any(each.tool == RESUME and self._sessions.counts(each) for each in said)

    def _remembered(self) -> Mapping[str, int]:
        """The agents that were stopped and not released since, by the versions that count."""
        stopped: Mapping[str, int] = {}
        for row in self._store.journal.history(ZONE, STOPPED_PATH):
            if self._sessions.counts(row):
                stopped = stopped_after(stopped, row)
        return stopped

    def _write(self, actor: str, tool: str, told: Mapping[str, int], gone: Iterable[str]) -> Row:
        released = set(gone)
        while True:
            head = self._store.journal.head(ZONE, STOPPED_PATH)
            agents: dict[str, Json] = {
                agent: row for agent, row in {**self._remembered(), **told}.items() if agent not in released
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


def _takes_steps(head: Row) -> bool:
    """Whether the session whose newest step is ``head`` goes on by itself."""
    return head.detail.get("status") == "running"
