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
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.config.store import Store
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import CLOCK_SECONDS
from watchroom.features.sessions.rows import ATTACHMENT, is_unfinished, presence_of
from watchroom.features.sessions.rules import EVERYBODY, stopped_after
from watchroom.features.sessions.service import OF_STOP, SessionRecords, is_steering, split_session
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import messages_to
from watchroom.kernel.rules.details import session_status
from watchroom.model import CANCEL, ENDED, PAUSE, RELEASE_AGENTS, RESUME, STOP_AGENTS, Json, Row, Zone

ZONE: Final[Zone] = "workspace"
PAUSE_SECONDS: Final = 10.0
"""Seconds to wait for the running steps of paused agents."""


class StoppedAgents:
    """The agents that a person stopped together. Usable from any thread."""

    def __init__(self, store: Store, sessions: SessionRecords) -> None:
        self._store = store
        self._sessions = sessions

    def stop(
        self, call: CallContext, agents: Collection[str], *, everybody: bool = False
    ) -> tuple[dict[str, int], dict[str, WatchroomError]]:
        """Pause the sessions of ``agents``, and record the agents that were not paused before as stopped.

        ``everybody``: also pause agents that begin later, until a person releases the stopped agents.

        Return the result of `pause`. Raise the errors of `pause`.
        """
        began = self._store.journal.last_seq()
        told, refused = self._stop(call, agents, everybody=everybody)
        # A session that began in the meantime may have looked for the stop before it was recorded.
        while everybody and (late := self._agents_since(began) - told.keys() - refused.keys()):
            more, no = self._stop(call, late, everybody=True)
            told, refused = {**told, **more}, {**refused, **no}
        return told, refused

    def _agents_since(self, seq: int) -> set[str]:
        """Return the agents whose open sessions have taken a step after row ``seq``."""
        heads = self._sessions.heads()
        return {split_session(head.path)[0] for head in heads if head.seq > seq and is_unfinished(head)}

    def _stop(
        self, call: CallContext, agents: Collection[str], *, everybody: bool
    ) -> tuple[dict[str, int], dict[str, WatchroomError]]:
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
        if everybody:
            with paused_only(told):
                row = self._write(call.with_tool(STOP_AGENTS), remembered, (), everybody=True)
            # The stop of all also holds the calls of an agent without a session.
            idle = {agent for agent, error in refused.items() if isinstance(error, SessionNotFound)}
            told |= dict.fromkeys(idle, row.seq)
            refused = {agent: error for agent, error in refused.items() if agent not in idle}
        elif remembered:
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
        """Resume the agents that `held` lists, and end a stop of all agents. Return by agent the row that
        resumed it. Raise `JournalError`."""
        stopped, stop = self.stopped(), self._sessions.find_stop_of_all()
        if not stopped and stop is None:
            return {}
        told = self._resume(call, self.held())
        self._write(call.with_tool(RELEASE_AGENTS), {}, stopped)
        # A session that began in the meantime may have obeyed the stop before the release was recorded.
        while late := self._held_by(stop) - told.keys():
            told |= self._resume(call, late)
        return told

    def _resume(self, call: CallContext, agents: Iterable[str]) -> dict[str, int]:
        told: dict[str, int] = {}
        for agent in sorted(agents):
            # An agent without a session has nothing to resume.
            with suppress(SessionNotFound):
                told[agent] = self._sessions.control(call.with_tool(RESUME), agent, None, "").seq
        return told

    def _held_by(self, stop: Row | None) -> set[str]:
        """Return the registered agents with an open session that only ``stop``, a stop of all agents,
        pauses."""
        if stop is None:
            return set()
        agents = {split_session(head.path)[0] for head in self._sessions.heads() if is_unfinished(head)}
        known = self._store.registry.current().agents
        return {agent for agent in agents if agent in known and self._is_held_by(stop, agent)}

    def _is_held_by(self, stop: Row, agent: str) -> bool:
        found = self._sessions.find_steering(agent)
        is_paused_alone = found.newest is not None and found.newest.tool == PAUSE
        is_resumed = found.newest is not None and found.newest.tool == RESUME and found.newest.seq > stop.seq
        return not (is_paused_alone or is_resumed)

    def stopped(self) -> Mapping[str, int]:
        """Return the stopped agents, each with the row that paused it. Agents that were resumed, paused or
        ended since are left out. Raise `JournalError`."""
        known = self._store.registry.current().agents
        return {
            agent: row
            for agent, row in self._remembered().items()
            if agent in known and not self._was_steered(agent, row)
        }

    def held(self) -> list[str]:
        """Return the stopped agents, and the agents that began after a stop of all agents. Raise
        `JournalError`."""
        return sorted({*self.stopped(), *self._held_by(self._sessions.find_stop_of_all())})

    def _is_attached(self, head: Row) -> bool:
        first = self._store.journal.version("session", head.path, 1)
        return first is not None and ATTACHMENT in first.detail

    def _was_steered(self, agent: str, row: int) -> bool:
        said = self._store.journal.topic(messages_to("session", agent), after=row)
        return any(is_steering(each) and self._sessions.counts(each) for each in said)

    def wait_until_resumed(self, agent: str, deadline: float, stop: Event) -> None:
        """Wait while ``agent`` is paused, until a person resumes it or ``stop`` is set.

        ``deadline``: the end of the wait, by `time.monotonic`. Raise `AgentPaused` if nobody resumes the
        agent in time, or if its session ends instead. Raise `JournalError`.
        """
        if not self.is_paused(agent):
            return
        was_open = self.is_open(agent)
        while self.is_paused(agent) and (self.is_open(agent) or not was_open):
            if time.monotonic() > deadline:
                raise AgentPaused(agent=agent)
            if stop.wait(CLOCK_SECONDS):
                return
        if was_open and not self.is_active(agent):
            raise AgentPaused(agent=agent)

    def _is_of_refused_stop(self, agent: str) -> bool:
        """Whether a stop paused ``agent``, and the journal refused the row that lists the stopped agents."""
        head = self._store.journal.head(ZONE, STOPPED_PATH)
        said = self._store.journal.topic(messages_to("session", agent), after=head.seq if head else 0)
        newest = next((row for row in said if is_steering(row) and self._sessions.counts(row)), None)
        return newest is not None and newest.tool == PAUSE and newest.detail.get(OF_STOP) is True

    def is_paused(self, agent: str) -> bool:
        """Whether every open session of ``agent`` is paused or has an instruction to pause. If it has no open
        session: whether the agent itself is paused."""
        newest = self._sessions.newest_step(agent)
        if newest is not None and _is_open(newest) and self._instruction(newest) != PAUSE:
            # One session at work is enough, and an agent can have many.
            return False
        if open_heads := self._open_heads(agent):
            return all(self._instruction(head) == PAUSE for head in open_heads)
        return self._sessions.find_steering(agent).pause is not None

    def is_open(self, agent: str) -> bool:
        """Whether ``agent`` has an open session."""
        return bool(self._open_heads(agent))

    def is_active(self, agent: str) -> bool:
        """Whether ``agent`` has an open session without an instruction to pause or to end."""
        return any(self._instruction(head) not in (PAUSE, CANCEL) for head in self._open_heads(agent))

    def _open_heads(self, agent: str) -> list[Row]:
        return [head for head in self._sessions.heads(agent) if _is_open(head)]

    def _instruction(self, head: Row) -> str:
        """Return the instruction in force for the session with the newest step ``head``: `PAUSE`, `CANCEL`,
        or empty. A session is paused until it has obeyed a later instruction."""
        if session_status(head) == "paused":
            return PAUSE
        found = self._sessions.find_steering(head.path)
        if found.pause is not None:
            return PAUSE
        newest = found.newest
        if newest is None or newest.tool != CANCEL:
            return ""
        first = self._store.journal.version("session", head.path, 1)
        return CANCEL if first is not None and newest.seq > first.seq else ""

    def _remembered(self) -> Mapping[str, int]:
        """Return the agents that were stopped and not released, according to the valid versions."""
        stopped: Mapping[str, int] = {}
        for row in self._store.journal.history(ZONE, STOPPED_PATH):
            if self._sessions.counts(row):
                stopped = stopped_after(stopped, row)
        return stopped

    def _write(
        self, call: CallContext, told: Mapping[str, int], gone: Iterable[str], *, everybody: bool = False
    ) -> Row:
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
                detail={"agents": agents, EVERYBODY: True} if everybody else {"agents": agents},
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


def _is_open(step: Row) -> bool:
    """Whether the session with the newest step ``step`` has not ended. A subagent has no own controls, so it
    does not count."""
    return session_status(step) not in ENDED and not is_subagent_step(step)


def _takes_steps(head: Row) -> bool:
    """Whether the session with the newest step ``head`` takes steps without a person."""
    return head.detail.get("status") == "running"
