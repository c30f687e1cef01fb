"""Agents that a person stopped together, recorded so that exactly these agents can be resumed together.

The newest version of one path lists them, so the list survives a restart and is the same for all processes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from threading import Event
from typing import Final

from watchroom.errors import (
    AgentPaused,
    InvalidAgentId,
    JournalError,
    OutcomeUnknown,
    PausedOnly,
    SessionNotFound,
    UnknownAgent,
    WatchroomError,
)
from watchroom.features.config.store import Store
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import CLOCK_SECONDS
from watchroom.features.sessions.rows import ATTACHMENT, is_leave, presence_of
from watchroom.features.sessions.rules import stopped_after
from watchroom.features.sessions.service import OF_STOP, SessionRecords
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import messages_to
from watchroom.kernel.rules.details import session_status
from watchroom.model import CANCEL, ENDED, PAUSE, RELEASE_AGENTS, RESUME, STOP_AGENTS, Json, Row, Zone

ZONE: Final[Zone] = "workspace"
PAUSE_SECONDS: Final = 10.0
"""Seconds to wait for the running steps of paused agents."""
_STEERING: Final = (PAUSE, RESUME, CANCEL)


class StoppedAgents:
    """The agents that a person stopped together. Usable from any thread."""

    def __init__(self, store: Store, sessions: SessionRecords) -> None:
        self._store = store
        self._sessions = sessions

    def stop(
        self, call: CallContext, agents: Collection[str]
    ) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents``, and record the agents that were not paused before as stopped.

        Return the result of `pause`. Raise the errors of `pause`.
        """
        known = self.stopped()
        # An agent that was paused for another reason, for example by a revert, is not resumed with the
        # others.
        stops = [
            agent
            for agent in agents
            if agent in known or not self.is_paused(agent) or self._is_of_refused_stop(agent)
        ]
        told, refused = self.pause(call, agents, of_stop=stops)
        remembered = {agent: row for agent, row in told.items() if agent in stops}
        if remembered:
            with paused_only(told):
                self._write(call.with_tool(STOP_AGENTS), remembered, ())
        return told, refused

    def pause(
        self, call: CallContext, agents: Iterable[str], *, of_stop: Collection[str] = ()
    ) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents`` until somebody resumes them.

        ``of_stop``: the agents that are recorded as stopped afterwards.

        Return by agent the row that paused it, and the error if it could not be paused. Raise `JournalError`,
        `PausedOnly` if the journal refuses to pause more agents.
        """
        told: dict[str, int] = {}
        refused: dict[str, WatchroomError] = {}
        for agent in agents:
            try:
                with paused_only(told):
                    row = self._sessions.control(
                        call.with_tool(PAUSE), agent, None, "", is_of_stop=agent in of_stop
                    )
                told[agent] = row.seq
            except (InvalidAgentId, UnknownAgent, SessionNotFound) as error:
                refused[agent] = error
        return told, refused

    def wait_until_paused(self, agents: Iterable[str], seconds: float = PAUSE_SECONDS) -> list[str]:
        """Wait until no process takes a step of ``agents``. Return the agents that are still taking a step.

        ``seconds``: timeout, default 10. Clients that a person started are left out, because they obey a
        pause only at their next call. Raise `JournalError`.
        """
        journal = self._store.journal
        deadline = time.monotonic() + seconds
        heads = [head for agent in agents for head in self._sessions.heads(agent) if _takes_steps(head)]
        running = [head for head in heads if not self._is_attached(head)]
        with closing(journal.changes()) as changes:
            while True:
                newest = journal.heads_of([("session", head.path) for head in running])
                held = {each.id for each in journal.presence.all() if each.is_alive} if running else set()
                running = [
                    head for head in newest if head and _takes_steps(head) and presence_of(head) in held
                ]
                left = deadline - time.monotonic()
                if not running or left <= 0:
                    return sorted({head.path.partition("/")[0] for head in running})
                changes.wait(left)

    def release(self, call: CallContext) -> Mapping[str, int]:
        """Resume the agents that `stopped` lists. Return by agent the row that resumed it. Raise
        `JournalError`."""
        stopped = self.stopped()
        told: dict[str, int] = {}
        for agent in stopped:
            # An agent without a session has nothing to resume.
            with suppress(SessionNotFound):
                told[agent] = self._sessions.control(call.with_tool(RESUME), agent, None, "").seq
        if stopped:
            self._write(call.with_tool(RELEASE_AGENTS), {}, stopped)
        return told

    def stopped(self) -> Mapping[str, int]:
        """Return the stopped agents, each with the row that paused it. Agents that were resumed, paused or
        ended since are left out. Raise `JournalError`."""
        known = self._store.registry.current().agents
        return {
            agent: row
            for agent, row in self._remembered().items()
            if agent in known and not self._was_steered(agent, row)
        }

    def _is_attached(self, head: Row) -> bool:
        first = self._store.journal.version("session", head.path, 1)
        return first is not None and ATTACHMENT in first.detail

    def _was_steered(self, agent: str, row: int) -> bool:
        said = self._store.journal.topic(messages_to("session", agent), after=row)
        return any(_is_steering(each) and self._sessions.counts(each) for each in said)

    def wait_until_resumed(self, agent: str, deadline: float, stop: Event) -> None:
        """Wait while ``agent`` is paused, until a person resumes it or ``stop`` is set.

        ``deadline``: the end of the wait, by `time.monotonic`. Raise `AgentPaused` if nobody resumes the
        agent in time, or if its session ends instead. Raise `JournalError`.
        """
        if not self.is_paused(agent):
            return
        while self.is_paused(agent):
            if time.monotonic() > deadline:
                raise AgentPaused(agent=agent)
            if stop.wait(CLOCK_SECONDS):
                return
        if not self.is_active(agent):
            raise AgentPaused(agent=agent)

    def _is_of_refused_stop(self, agent: str) -> bool:
        """Whether a stop paused ``agent``, and the journal refused the row that lists the stopped agents."""
        head = self._store.journal.head(ZONE, STOPPED_PATH)
        said = self._store.journal.topic(messages_to("session", agent), after=head.seq if head else 0)
        newest = next((row for row in said if _is_steering(row) and self._sessions.counts(row)), None)
        return newest is not None and newest.tool == PAUSE and newest.detail.get(OF_STOP) is True

    def is_paused(self, agent: str) -> bool:
        """Whether every open session of ``agent`` is paused or has an instruction to pause."""
        newest = self._sessions.newest_step(agent)
        if newest is None or (session_status(newest) not in ENDED and self._instruction(newest) != PAUSE):
            # One session at work is enough, and an agent can have many.
            return False
        open_heads = self._open_heads(agent)
        return bool(open_heads) and all(self._instruction(head) == PAUSE for head in open_heads)

    def is_active(self, agent: str) -> bool:
        """Whether ``agent`` has an open session without an instruction to pause or to end."""
        return any(self._instruction(head) not in (PAUSE, CANCEL) for head in self._open_heads(agent))

    def _open_heads(self, agent: str) -> list[Row]:
        return [head for head in self._sessions.heads(agent) if session_status(head) not in ENDED]

    def _instruction(self, head: Row) -> str:
        """Return the instruction in force for the session with the newest step ``head``: `PAUSE`, `RESUME`,
        `CANCEL`, or empty. A session is paused until it has obeyed a later instruction."""
        if session_status(head) == "paused":
            return PAUSE
        first = self._store.journal.version("session", head.path, 1)
        said = self._sessions.controls(head.path, first.seq) if first is not None else []
        return next((each.row.tool for each in reversed(said) if _is_steering(each.row)), "")

    def _remembered(self) -> Mapping[str, int]:
        """Return the agents that were stopped and not released, according to the valid versions."""
        stopped: Mapping[str, int] = {}
        for row in self._store.journal.history(ZONE, STOPPED_PATH):
            if self._sessions.counts(row):
                stopped = stopped_after(stopped, row)
        return stopped

    def _write(self, call: CallContext, told: Mapping[str, int], gone: Iterable[str]) -> Row:
        released = set(gone)
        while True:
            head = self._store.journal.head(ZONE, STOPPED_PATH)
            agents: dict[str, Json] = {
                agent: row for agent, row in {**self.stopped(), **told}.items() if agent not in released
            }
            version = (head.version or 0) if head is not None else 0
            draft = call.write(
                *(ZONE, STOPPED_PATH, ""),
                message=", ".join(released or told)[:200],
                expected=version,
                detail={"agents": agents},
            )
            row = self._store.write(draft).row
            if row.outcome == "ok":
                return row


@contextmanager
def paused_only(agents: Collection[str]) -> Iterator[None]:
    """Raise `PausedOnly` if the journal refuses a row in the context, and ``agents``, which were paused
    before, are not empty."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except JournalError as error:
        if not agents:
            raise
        raise PausedOnly(agents=", ".join(agents), reason=error.message()) from error


def _is_steering(row: Row) -> bool:
    """Whether ``row`` pauses, resumes or cancels an agent now. A leave for a later resume ends no pause."""
    return row.tool in _STEERING and not is_leave(row)


def _takes_steps(head: Row) -> bool:
    """Whether the session with the newest step ``head`` takes steps without a person."""
    return head.detail.get("status") == "running"
