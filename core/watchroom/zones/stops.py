"""Agents that a person stopped together, to let exactly these go on again.

Who is stopped is the newest version of one path, so it is known after a restart too, to all who look.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress
from typing import Final

from watchroom.errors import InvalidAgentId, SessionNotFound, UnknownAgent, WatchroomError
from watchroom.journal.topics import messages_to
from watchroom.model import CANCEL, ENDED, PAUSE, RELEASE_AGENTS, RESUME, STOP_AGENTS, Json, Row, Write, Zone
from watchroom.rules.details import session_status
from watchroom.rules.effects import STOPPED_PATH
from watchroom.rules.presence import presence_of
from watchroom.rules.stops import stopped_after
from watchroom.zones.sessions import SessionZone
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"
PAUSE_SECONDS: Final = 10.0
"""Within so long whoever is paused stops, or is not waited for."""
_STEERING: Final = (PAUSE, RESUME, CANCEL)
_ATTACHMENT: Final = "attachment"
"""In the detail of the first step of a session that a client of a person's has."""


class StopZone:
    """Who is stopped, as rows in ``store``; ``sessions`` are told."""

    def __init__(self, store: Store, sessions: SessionZone) -> None:
        self._store = store
        self._sessions = sessions

    def stop(self, actor: str, agents: Collection[str]) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents`` for ``actor``, and remember as stopped those that were not paused
        already. Return as `pause` does. Raise `JournalError`."""
        known = self.stopped()
        # Who was paused for another reason, as by a revert, does not go on with the others.
        stops = [agent for agent in agents if agent in known or not self._is_paused(agent)]
        told, refused = self.pause(actor, agents)
        remembered = {agent: row for agent, row in told.items() if agent in stops}
        if remembered:
            self._write(actor, STOP_AGENTS, remembered, ())
        return told, refused

    def pause(self, actor: str, agents: Iterable[str]) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents`` for ``actor``, until somebody resumes each of them.

        Return by agent the row that told it, and why one could not be told. Raise `JournalError`."""
        told: dict[str, int] = {}
        refused: dict[str, WatchroomError] = {}
        for agent in agents:
            try:
                told[agent] = self._sessions.control(actor, PAUSE, agent, None, "").seq
            except (InvalidAgentId, UnknownAgent, SessionNotFound) as error:
                refused[agent] = error
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
        """Resume for ``actor`` the agents that `stopped` lists. Return by agent the row that told it. Raise
        `JournalError`."""
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
        """Return the agents that are stopped, each with the row that told it. Agents that somebody resumed,
        paused or ended since are not among them. Raise `JournalError`."""
        known = self._store.registry.current().agents
        return {
            agent: row
            for agent, row in self._remembered().items()
            if agent in known and not self._was_steered(agent, row)
        }

    def _is_attached(self, head: Row) -> bool:
        first = self._store.journal.version("session", head.path, 1)
        return first is not None and _ATTACHMENT in first.detail

    def _was_steered(self, agent: str, row: int) -> bool:
        said = self._store.journal.topic(messages_to("session", agent), after=row)
        return any(each.tool in _STEERING and self._sessions.counts(each) for each in said)

    def _is_paused(self, agent: str) -> bool:
        """Whether every session of ``agent`` that has not ended is paused, or was told to pause."""
        open_heads = [head for head in self._sessions.heads(agent) if session_status(head) not in ENDED]
        return bool(open_heads) and all(self._is_told_to_pause(head) for head in open_heads)

    def _is_told_to_pause(self, head: Row) -> bool:
        if session_status(head) == "paused":
            return True
        first = self._store.journal.version("session", head.path, 1)
        said = self._sessions.controls(head.path, first.seq) if first is not None else []
        newest = next((each.row.tool for each in reversed(said) if each.row.tool in _STEERING), None)
        return newest == PAUSE

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
                agent: row for agent, row in {**self.stopped(), **told}.items() if agent not in released
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
