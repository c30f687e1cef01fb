"""The agents: their status, their order on screen, and when they read their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.checks.view import CheckView, apply_check, lose_check
from watchroom.features.config.rows import Agent
from watchroom.features.handoffs.rows import hand_over_of
from watchroom.features.people.rules import STOPPED_PATH, effect_of
from watchroom.features.sessions.rows import (
    ClientCall,
    Parking,
    is_leave,
    is_unsupervised,
    parking_of,
)
from watchroom.features.sessions.rules import stop_of_all_after
from watchroom.features.sessions.view import RequestView, SessionView
from watchroom.features.trees.rows import REPO, Tree
from watchroom.features.trees.view import find_home, is_linked
from watchroom.kernel.rules.activity import count_activity
from watchroom.kernel.rules.conflicts import ConflictView
from watchroom.kernel.rules.details import get_count
from watchroom.model import ENDED, PAUSE, RESUME, Row, outcome_of

Status: TypeAlias = Literal[
    "waiting", "error", "lost", "unsupervised", "parked", "paused", "running", "idle", "done"
]
"""The status of an agent, in the order on screen: agents that wait for a person or failed come before agents
that work.

- ``lost``: its process is no longer alive.
- ``unsupervised``: no hook reports its client's current work.
- ``parked``: it waits until a rate or usage limit resets, in a process that may be alive.
"""
_ORDER: Final[Mapping[Status, int]] = {status: at for at, status in enumerate(get_args(Status))}
IDLE_SECONDS: Final = 30.0
"""Default seconds without a row of an agent after which it counts as idle."""
Reading: TypeAlias = Literal["now", "resumed", "next", "never"]
Steering: TypeAlias = Literal["message", "pause", "leave", "end"]
"""How a person steers an agent.

- ``pause``: pause or resume it now.
- ``leave``: permit to resume it once, when its limit resets.
"""


class MessageReader(NamedTuple):
    """When an agent would read a message that is sent now.

    - ``now``: before its next step.
    - ``resumed``: when its session is resumed. ``hint``: the command for that, if known.
    - ``next``: in its next session, because the current one was cancelled.
    - ``never``: it has ended, or its session takes no messages.
    """

    when: Reading
    hint: str = ""


class AgentView(NamedTuple):
    """An agent, its operations and its newest session. Operations are its rows except steps of sessions, plus
    the calls of its client's own tools.

    - ``last``: its newest operation.
    - ``activity``: the number of operations in each bucket of 5 seconds.
    - ``last_heard``: the time of its newest row of any kind, in nanoseconds since the epoch.
    """

    agent: Agent
    last: Row | None = None
    last_act: Row | None = None
    """The newest operation that is not a read."""
    rows: int = 0
    refused: int = 0
    client_calls: int = 0
    """The number of calls of its client's own tools."""
    client_edits: int = 0
    """The number of calls of its client's own tools that wrote files."""
    activity: Mapping[int, int] = MappingProxyType({})
    session: SessionView | None = None
    request: RequestView | None = None
    """The request that a person has to answer."""
    last_heard: int = 0
    is_lost: bool = False
    """Whether the process that must continue its session is no longer alive."""
    is_present: bool = True
    """Whether the process of its session may still run. False after its lease was released or expired."""
    is_ended: bool = False
    """Whether the agent, its parent or its task was ended."""
    is_pause_requested: bool = False
    """Whether a pause of the agent was requested after its last resume."""
    is_pause_of_session: bool = False
    """Whether that pause is only for its newest session."""
    is_stopped_with_all: bool = False
    """Whether a person paused everybody after its last resume."""
    check: CheckView | None = None
    """The newest check of its work, None if there was none."""
    leave: int = 0
    """The row with which a person permitted to resume it when its limit resets, 0 for none."""

    @property
    def parking(self) -> Parking | None:
        """The limit that its session waits for, None if the session is not parked."""
        return parking_of(self.session.last) if self.session is not None and not self.is_ended else None

    handed_to: str = ""
    """The agent to which a person handed its work over last, empty for none."""

    @property
    def is_stopped(self) -> bool:
        """Whether the agent's process ended normally before its session ended. The session can be resumed."""
        return not self.is_present and not self.is_lost and self.is_unfinished

    @property
    def is_unfinished(self) -> bool:
        """Whether the agent's session has not ended."""
        return self.session is not None and not self.is_ended and self.session.status not in ENDED

    @property
    def is_at_work(self) -> bool:
        """Whether its session is in a turn, in a process that may be alive."""
        session = self.session
        return session is not None and self.is_present and self.is_unfinished and session.status != "idle"

    @property
    def is_paused(self) -> bool:
        """Whether its session is paused, or pauses at its next step or prompt."""
        if self.session is None:
            return False
        return self.session.status == "paused" or self.is_pause_requested or self.is_stopped_with_all

    @property
    def is_resumable(self) -> bool:
        """Whether a person can resume it: it is paused or parked, or an error ended its session."""
        is_stuck = self.session is not None and self.session.status in ("error", "parked")
        return self.is_paused or is_stuck

    @property
    def can_end(self) -> bool:
        """Whether a person can end its session: the session has not ended, or ended by an error."""
        has_failed = self.session is not None and self.session.status == "error" and not self.is_ended
        return self.is_unfinished or has_failed

    def allows(self, steering: Steering) -> bool:
        """Return whether a person can steer the agent in this way now. Only an end and a message can wait
        until another process resumes the session."""
        if steering == "message":
            return self.session is not None and find_reader(self).when != "never"
        if steering == "end":
            return self.can_end
        if steering == "pause":
            return self.can_end and self.is_present
        is_known = self.parking is not None and self.parking.resets is not None
        return is_known and self.is_present and not self.leave

    @property
    def is_unsupervised(self) -> bool:
        """Whether no hook reports the current work of the agent's client, so that its calls cannot be held or
        approved."""
        return self.session is not None and self.is_unfinished and is_unsupervised(self.session.last)

    @property
    def is_thinking(self) -> bool:
        """Whether the agent's model is streaming an answer."""
        streams = self.session.streams if self.session else None
        return streams is not None and (self.last is None or streams.seq > self.last.seq)

    def status(self, now: int, idle_after: float = IDLE_SECONDS) -> Status:
        """Return the status at ``now`` (nanoseconds since the epoch).

        - ``idle``: the agent had no row for ``idle_after`` seconds, default 30.
        - ``done``: its session or the agent itself has ended.
        - ``error``: an error ended its session. A failed call does not stop an agent.
        """
        step = self.session.status if self.session else "idle"
        if self.is_ended:
            return "done"
        if self.is_lost:
            return "lost"
        if step == "parked" and self.is_present and not self.is_unsupervised:
            return "parked"
        if step == "waiting_for_human_input" and not (self.request and self.request.has_expired(now)):
            return "waiting"
        if self.is_unsupervised:
            return "unsupervised"
        if self.is_present and (step == "paused" or (step == "idle" and self.is_paused)):
            return "paused"
        if step == "error":
            return "error"
        if step in ENDED and not self._acted_since_session():
            return "done" if step == "done" else "idle"
        if step == "idle" and self.session is not None and self.session.last is not self.session.begun:
            # Its client waits for the next prompt.
            return "idle"
        if not self.is_present or (now - self.last_heard > idle_after * 1e9 and not self._is_run()):
            return "done" if step == "done" else "idle"
        return "running"

    def _is_run(self) -> bool:
        """Return whether its session is in a step, in a process that may be alive. Models can think for
        minutes."""
        return self.session is not None and self.session.status == "running" and bool(self.session.presence)

    def _acted_since_session(self) -> bool:
        """Return whether it acted outside of the runtime after its newest session."""
        return self.session is not None and self.last is not None and self.last.seq > self.session.last.seq


def order_agents(views: Iterable[AgentView], now: int) -> tuple[AgentView, ...]:
    """Return ``views`` by status at ``now`` (nanoseconds since the epoch), in the order of `Status`. Agents
    of one status keep their order."""
    return tuple(sorted(views, key=lambda view: _ORDER[view.status(now)]))


def find_reader(view: AgentView, hint: str = "") -> MessageReader:
    """Return when the agent of ``view`` would read a message that is sent now.

    ``hint``: the command that resumes a lost agent.
    """
    session = view.session
    takes_none = session is None and not view.agent.task
    if view.is_ended or takes_none:
        return MessageReader("never")
    if session is not None and session.status == "cancelled":
        return MessageReader("next")
    if view.is_present and not view.is_paused:
        return MessageReader("now")
    return MessageReader("resumed", hint)


def is_being_settled(conflict: ConflictView, agent: AgentView | None) -> bool:
    """Return whether ``agent``, whose write was refused, still works in its tree with its own tools.

    Such an agent usually reads the file and writes it again, which settles the conflict.
    """
    if conflict.zone != REPO or agent is None or agent.session is None:
        return False
    return agent.session.status == "running" and not agent.is_lost


def find_quiet_trees(trees: Iterable[Tree], agents: Iterable[AgentView]) -> frozenset[str]:
    """Return the ids of the main tree and of the linked trees in which no agent is at work. An agent between
    two turns is not at work.

    The main tree is always included, because trees land in its branch.
    """
    known = [*trees]
    busy = {
        home.id
        for each in agents
        if each.is_at_work and each.session is not None and each.session.folder
        if (home := find_home(known, each.session.folder)) is not None
    }
    return frozenset(tree.id for tree in known if tree.id not in busy or not is_linked(tree))


class AgentProjection:
    """The registered agents and their operations. Takes all rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._agents: dict[str, AgentView] = {}
        self._stop_of_all = 0
        """The row with which a person paused everybody, 0 for none."""

    @property
    def is_everybody_stopped(self) -> bool:
        """Whether a person paused everybody, also agents that begin later."""
        return self._stop_of_all > 0

    def register(self, agents: Iterable[Agent]) -> None:
        """Replace the registered agents by ``agents``."""
        unknown = AgentView(Agent(""), is_stopped_with_all=self.is_everybody_stopped)
        self._agents = {agent.id: _register(self._agents.get(agent.id, unknown), agent) for agent in agents}

    def apply(self, row: Row, *, is_reading: bool) -> None:
        """Apply ``row``, an operation. ``is_reading``: it is a read, which changed nothing."""
        view = self._agents.get(row.actor)
        if view is None:
            return
        activity = dict(view.activity)
        count_activity(activity, row.time)
        self._agents[row.actor] = view._replace(
            last=row,
            last_act=view.last_act if is_reading else row,
            rows=view.rows + 1,
            refused=view.refused + (outcome_of(row) != "ok"),
            activity=activity,
            last_heard=row.time,
        )

    def apply_client_call(self, row: Row, call: ClientCall) -> None:
        """Count ``call`` of a client's own tool, which ended with ``row``."""
        view = self._agents.get(row.actor)
        if view is not None:
            self._agents[row.actor] = view._replace(
                client_calls=view.client_calls + 1, client_edits=view.client_edits + call.is_edit
            )

    def apply_request(self, row: Row) -> None:
        """Apply ``row``, a version of a request to people."""
        agent = row.path.partition("/")[0]
        view = self._agents.get(agent)
        if view is not None and row.version is not None:
            asked = RequestView(row) if row.version == 1 else None
            if asked is not None or (view.request is not None and view.request.row.path == row.path):
                self._agents[agent] = view._replace(request=asked)

    def apply_control(self, row: Row) -> None:
        """Apply ``row``, which takes effect, if it pauses or resumes agents."""
        if row.zone == "workspace" and row.path == STOPPED_PATH:
            self._apply_stop(row)
            return
        agent = row.path.partition("/")[0]
        view, effect = self._agents.get(agent), effect_of(row)
        if view is None or effect not in ("pause", "resume"):
            return
        if row.path == agent or (view.session is not None and row.path == view.session.path):
            if is_leave(row):
                self._agents[agent] = view._replace(leave=row.seq if view.parking is not None else 0)
            else:
                self._agents[agent] = view._replace(
                    is_pause_requested=row.tool == PAUSE,
                    is_pause_of_session=row.path != agent,
                    is_stopped_with_all=view.is_stopped_with_all and row.tool != RESUME,
                    leave=0,
                )

    def _apply_stop(self, row: Row) -> None:
        before, self._stop_of_all = self._stop_of_all, stop_of_all_after(self._stop_of_all, row)
        if before != self._stop_of_all:
            stopped = self.is_everybody_stopped
            self._agents = {
                agent: view._replace(is_stopped_with_all=stopped) for agent, view in self._agents.items()
            }

    def apply_check(self, row: Row) -> None:
        """Apply ``row``, a note about a check of an agent's work."""
        view = self._agents.get(row.path)
        if view is not None:
            self._agents[row.path] = view._replace(check=apply_check(view.check, row))

    def accept_check(self, row: Row) -> None:
        """Apply ``row``, with which a person accepted an agent's work although a check did not pass."""
        view = self._agents.get(row.path)
        if view is None or view.check is None or view.check.ended is None:
            return
        if view.check.ended.seq <= get_count(row.detail, "row"):
            self._agents[row.path] = view._replace(check=view.check._replace(accepted=row))

    def apply_hand_over(self, row: Row) -> None:
        """Apply ``row`` if a person hands an agent's work over with it."""
        view, receiver = self._agents.get(row.path), hand_over_of(row)
        if view is not None and receiver:
            self._agents[row.path] = view._replace(handed_to=receiver)

    def apply_session(self, row: Row, session: SessionView) -> None:
        """Apply ``row``, a step of ``session``, which is its agent's newest session."""
        view = self._agents.get(row.actor)
        if view is None:
            return
        if row.version == 1 and view.is_pause_of_session:
            view = view._replace(is_pause_requested=False, is_pause_of_session=False)
        is_new_step = row.version is not None
        is_same = not is_new_step and view.session is not None and view.session.presence == session.presence
        parking = parking_of(session.last)
        is_still_parked = parking is not None and parking.since != session.last.version
        self._agents[row.actor] = view._replace(
            session=session,
            last_heard=row.time,
            is_lost=view.is_lost and is_same,
            is_present=view.is_present or not is_same,
            leave=view.leave if is_still_parked else 0,
        )

    def lose(self, presence: str) -> None:
        """Mark the agents of the process with the lease ``presence``, which died."""
        for agent, known in self._agents.items():
            view = known._replace(check=lose_check(known.check, presence))
            if view.session is not None and view.session.presence == presence:
                view = view._replace(is_present=False, is_lost=view.is_unfinished)
            self._agents[agent] = known if view == known else view

    def end(self, agent: str) -> None:
        """Mark ``agent`` (its id) as ended."""
        if agent in self._agents:
            self._agents[agent] = self._agents[agent]._replace(is_ended=True, is_lost=False)

    def current(self) -> tuple[AgentView, ...]:
        """Return the agents in the order of their registration."""
        return tuple(self._agents.values())


def _register(known: AgentView, agent: Agent) -> AgentView:
    """Return the view of ``agent`` with its current registration. An ended agent starts again with a new
    task."""
    return known._replace(agent=agent, is_ended=known.is_ended and known.agent.task == agent.task)
