"""The agents: what each is up to, in which order people want to see them, and who reads their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import ENDED, Row, outcome_of
from watchroom.projections.sessions import RequestView, SessionView
from watchroom.rules.config import Agent
from watchroom.rules.presence import is_unsupervised

Status: TypeAlias = Literal["waiting", "error", "lost", "unsupervised", "paused", "running", "idle", "done"]
"""What an agent is up to, in the order in which people want to see it: what waits for them and what went
wrong before what goes on by itself. ``lost``: not seen alive; ``unsupervised``: its client
does something of which no hook tells."""
_ORDER: Final[Mapping[Status, int]] = {status: at for at, status in enumerate(get_args(Status))}
Reading: TypeAlias = Literal["now", "resumed", "next", "never"]


class MessageReader(NamedTuple):
    """When an agent reads what is sent to it: ``now``, before its next step; once its session is ``resumed``,
    by the command in ``hint`` where one is known; with its ``next`` session, for this one was cancelled; or
    ``never``, for it has ended or no session takes messages."""

    when: Reading
    hint: str = ""


class AgentView(NamedTuple):
    """An agent with what it did last, and its newest session. What it did are its rows without the steps of
    sessions, but with the calls of its client's own tools; ``activity`` maps a bucket (seconds / 5) to their
    number. ``last_heard`` is the time of its newest row of any kind."""

    agent: Agent
    last: Row | None = None
    last_act: Row | None = None
    """The newest of these rows that is more than a reading."""
    rows: int = 0
    refused: int = 0
    client_calls: int = 0
    """How many of these rows are calls of its client's own tools; ``client_edits``: how many of them wrote
    files."""
    client_edits: int = 0
    activity: Mapping[int, int] = MappingProxyType({})
    session: SessionView | None = None
    request: RequestView | None = None
    """What it waits for a person to answer."""
    last_heard: int = 0
    is_lost: bool = False
    """Whether the process is not seen alive that has to go on with its session."""
    is_present: bool = True
    """Whether the process that ran its session may still run it: not where its lease was released or ran
    out."""
    is_ended: bool = False
    """Whether it works no more: it was ended, or one above it, or its task."""

    @property
    def is_stopped(self) -> bool:
        """Whether its session has not ended, and its process went away as it should: it can be resumed."""
        return not self.is_present and not self.is_lost and self.is_unfinished

    @property
    def is_unfinished(self) -> bool:
        """Whether a process has to go on with its session."""
        return self.session is not None and not self.is_ended and self.session.status not in ENDED

    @property
    def is_unsupervised(self) -> bool:
        """Whether its client does something of which no hook tells: nobody can hold or ask there."""
        return self.session is not None and self.is_unfinished and is_unsupervised(self.session.last)

    @property
    def is_thinking(self) -> bool:
        """Whether its model is just saying something."""
        streams = self.session.streams if self.session else None
        return streams is not None and (self.last is None or streams.seq > self.last.seq)

    def status(self, now: int, idle_after: float = 30.0) -> Status:
        """What the agent is up to at ``now`` (nanoseconds since the epoch); ``idle`` when nothing was heard
        of it for ``idle_after`` seconds, ``done`` when its session or it itself has ended."""
        step = self.session.status if self.session else "idle"
        if self.is_ended:
            return "done"
        if self.is_lost:
            return "lost"
        if step == "waiting_for_human_input" and not (self.request and self.request.has_expired(now)):
            return "waiting"
        if self.is_unsupervised:
            return "unsupervised"
        if step in ("paused", "error"):
            return "paused" if step == "paused" else "error"
        if step in ENDED and not self._acted_since_session():
            return "done" if step == "done" else "idle"
        if step == "idle" and self.session is not None and self.session.last is not self.session.begun:
            # Its client waits for the next prompt.
            return "idle"
        if not self.is_present or (now - self.last_heard > idle_after * 1e9 and not self._is_run()):
            return "done" if step == "done" else "idle"
        return "error" if self.last is not None and outcome_of(self.last) != "ok" else "running"

    def _is_run(self) -> bool:
        """Whether a process that may be there is at a step: its model may think for long."""
        return self.session is not None and self.session.status == "running" and bool(self.session.presence)

    def _acted_since_session(self) -> bool:
        """Whether it did something after its newest session: on behalf of no session of the runtime."""
        return self.session is not None and self.last is not None and self.last.seq > self.session.last.seq


def order_agents(views: Iterable[AgentView], now: int) -> tuple[AgentView, ...]:
    """``views`` as people want to see them at ``now`` (nanoseconds since the epoch): by status, in the order
    of `Status`; those of one status as they came."""
    return tuple(sorted(views, key=lambda view: _ORDER[view.status(now)]))


def find_reader(view: AgentView, hint: str = "") -> MessageReader:
    """Who reads what is sent to the agent of ``view`` now; ``hint`` is the command that resumes it, if it is
    lost."""
    session = view.session
    takes_none = session is None and not view.agent.task
    if view.is_ended or takes_none:
        return MessageReader("never")
    if session is not None and session.status == "cancelled":
        return MessageReader("next")
    if view.is_present and (session is None or session.status != "paused"):
        return MessageReader("now")
    return MessageReader("resumed", hint)
