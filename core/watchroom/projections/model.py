"""One moment of a workspace, as people look at it. Immutable; unchanged parts are the same objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.model import Outcome, Row
from watchroom.projections.buffers import BufferView
from watchroom.projections.sessions import RequestView, SessionView
from watchroom.projections.tasks import CommandView, MessageView, TaskView
from watchroom.rules.config import Agent
from watchroom.rules.conflicts import ConflictView
from watchroom.rules.handoffs import Delivery
from watchroom.rules.needs import NeedKind, is_acknowledgeable

Status: TypeAlias = Literal["running", "waiting", "paused", "idle", "done", "error", "lost"]
BUCKET_SECONDS: Final = 5
BUCKETS: Final = 24
"""Activity is counted in so many buckets of so many seconds: two minutes."""


class AgentView(NamedTuple):
    """An agent with what it did last, and its newest session. What it did are its rows without the steps of
    sessions; ``activity`` maps a bucket (seconds / 5) to their number. ``heard`` is the time of its newest
    row of any kind."""

    agent: Agent
    last: Row | None = None
    rows: int = 0
    refused: int = 0
    activity: Mapping[int, int] = MappingProxyType({})
    session: SessionView | None = None
    request: RequestView | None = None
    """What it waits for a person to answer."""
    last_heard: int = 0
    is_lost: bool = False
    """Whether the process is not seen alive that has to go on with its session."""

    @property
    def is_thinking(self) -> bool:
        """Whether its model is just saying something."""
        streams = self.session.streams if self.session else None
        return streams is not None and (self.last is None or streams.seq > self.last.seq)

    def status(self, now: int, idle_after: float = 30.0) -> Status:
        """What the agent is up to at ``now`` (nanoseconds since the epoch); ``idle`` when nothing was heard
        of it for ``idle_after`` seconds."""
        step = self.session.status if self.session else "idle"
        if self.is_lost:
            return "lost"
        if step == "waiting_for_human_input" and not (self.request and self.request.has_expired(now)):
            return "waiting"
        if step in ("paused", "error"):
            return "paused" if step == "paused" else "error"
        if now - self.last_heard > idle_after * 1e9:
            return "done" if step == "done" else "idle"
        return "error" if self.last is not None and self.last.outcome != "ok" else "running"


class Need(NamedTuple):
    """Something that waits for a person. ``key`` tells one need from another for as long as it lasts."""

    kind: NeedKind
    key: str
    row: Row
    against: str = ""
    """The other party: who wrote the current version, was written over, or should acknowledge."""
    times: int = 1
    since: int = 0
    """The row that opened it: what was settled and comes again has another one."""

    @property
    def identity(self) -> tuple[NeedKind, str, int]:
        """The same for as long as it lasts, whatever is tried meanwhile; never that of another need."""
        return self.kind, self.key, self.since

    @property
    def agent(self) -> str:
        """Whose doing, or leaving undone, it is about."""
        if self.kind == "lost":
            return self.against.partition(", ")[0]
        return self.against if self.kind == "stalled" else self.row.actor

    @property
    def is_acknowledgeable(self) -> bool:
        """Whether a person who looked and finds it fine can say so; a conflict has to be settled."""
        return is_acknowledgeable(self.kind, self.row.zone)


class SharedFile(NamedTuple):
    """A collaborative file: its current version, and how many open conflicts it has."""

    path: str
    head: Row
    conflicts: int = 0


class BoardView(NamedTuple):
    """A whiteboard that was written: its current version, and who wrote it, the last coming first."""

    name: str
    head: Row
    writers: tuple[str, ...] = ()


class DocumentView(NamedTuple):
    """A realtime document: its newest row, and who wrote to it, the last coming first. ``activity`` maps a
    bucket (seconds / 5) to the number of edits."""

    name: str
    created: Row
    newest: Row
    writers: tuple[str, ...] = ()
    activity: Mapping[int, int] = MappingProxyType({})

    @property
    def version(self) -> int:
        return self.newest.version or 0


class Model(NamedTuple):
    """Everything that the dashboard shows, as of row ``seq``."""

    seq: int = 0
    time: int = 0
    agents: tuple[AgentView, ...] = ()
    needs: tuple[Need, ...] = ()
    conflicts: tuple[ConflictView, ...] = ()
    """The open ones, newest first. Each is a need as well."""
    requests: tuple[RequestView, ...] = ()
    """What agents ask of people, newest first. Each is a need as well."""
    ended_requests: tuple[RequestView, ...] = ()
    """The newest of those that have ended, newest first."""
    recent: tuple[Row, ...] = ()
    """The newest rows, newest first, without the steps of sessions."""
    newest: tuple[Row, ...] = ()
    """The newest rows of any kind, newest first."""
    deliveries: tuple[Delivery, ...] = ()
    """Newest first."""
    tasks: tuple[TaskView, ...] = ()
    """Newest first."""
    messages: tuple[MessageView, ...] = ()
    """The newest of those that agents and people sent each other, newest first."""
    commands: tuple[CommandView, ...] = ()
    """The newest of those that agents ran in their tasks' folders, newest first."""
    buffers: tuple[BufferView, ...] = ()
    """The open ones, by agent and name."""
    files: tuple[SharedFile, ...] = ()
    """By path."""
    documents: tuple[DocumentView, ...] = ()
    """By name."""
    boards: tuple[BoardView, ...] = ()
    """By name."""
    leases: Mapping[str, Row] = MappingProxyType({})
    """The newest lease on each board that was not released, by the board's name. It may have run out."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    activity: Mapping[int, int] = MappingProxyType({})

    def conflicts_of(self, head: Row) -> list[ConflictView]:
        """The open conflicts on what ``head`` is a version of, newest first."""
        return [each for each in self.conflicts if (each.zone, each.path) == (head.zone, head.path)]

    def buffers_of(self, agent_id: str) -> list[BufferView]:
        """The open buffers of the agent ``agent_id``, by name."""
        return [each for each in self.buffers if each.agent == agent_id]

    def agent(self, agent_id: str) -> AgentView | None:
        """The agent ``agent_id``, None if no such agent is registered."""
        return next((view for view in self.agents if view.agent.id == agent_id), None)


HANDOFF_OVERDUE_SECONDS: Final = 120.0
"""So many seconds a handoff may wait for its receiver before a person should know."""
EXPIRES_SOON_SECONDS: Final = 30.0
"""A request that expires within so many seconds goes before everything else."""
STALLED_SECONDS: Final = 300.0
"""So many seconds an agent may do nothing about what waits for it before a person should know."""


def urgent_needs(model: Model, now: int) -> tuple[Need, ...]:
    """The needs of ``model`` that a person should look at by ``now`` (nanoseconds since the epoch), most
    urgent first.

    All that count or list needs call this, so that they agree. Handoffs that may still wait are left out. An
    agent that does nothing about its handoffs is a need of the kind ``stalled``, in the place of the oldest
    of them: each thing that waits is one need.
    """
    horizon = now - int(HANDOFF_OVERDUE_SECONDS * 1e9)
    too_late = {asked.row.path for asked in model.requests if asked.has_expired(now)}
    urgent = [
        need
        for need in model.needs
        if need.kind != "handoff" and not (need.kind == "request" and need.key in too_late)
    ]
    # What can soon not be answered any more comes before what waits.
    soon = {
        asked.row.path for asked in model.requests if asked.has_expired(now + int(EXPIRES_SOON_SECONDS * 1e9))
    }
    urgent.sort(key=lambda need: not (need.kind == "request" and need.key in soon))
    late = [need for need in model.needs if need.kind == "handoff" and need.row.time <= horizon]
    stalled = _stalled(model, late, now)
    covered = {need.row.seq for need in stalled}
    return (*urgent, *stalled, *(need for need in late if need.row.seq not in covered))


def _stalled(model: Model, late: Sequence[Need], now: int) -> list[Need]:
    """For each agent that does nothing about its ``late`` handoffs, the oldest of them."""
    horizon = now - int(STALLED_SECONDS * 1e9)
    waiting: dict[str, Need] = {}
    for need in late:
        if need.row.time <= horizon:
            known = waiting.get(need.against)
            if known is None or need.row.seq < known.row.seq:
                waiting[need.against] = need
    if not waiting:
        return []
    return [
        waiting[view.agent.id]._replace(kind="stalled", key=view.agent.id, times=1)
        for view in model.agents
        if view.agent.id in waiting and (view.last is None or view.last.time <= horizon)
    ]


def sparkline_counts(activity: Mapping[int, int], now: int, buckets: int = BUCKETS) -> list[int]:
    """The numbers of ``activity`` in the last so many ``buckets`` up to ``now`` (nanoseconds since the
    epoch), oldest first."""
    newest = bucket_of(now)
    return [activity.get(bucket, 0) for bucket in range(newest - buckets + 1, newest + 1)]


def bucket_of(time_ns: int) -> int:
    """The bucket of activity in which ``time_ns`` (nanoseconds since the epoch) lies."""
    return time_ns // (BUCKET_SECONDS * 1_000_000_000)
