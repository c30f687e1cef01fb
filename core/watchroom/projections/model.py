"""One moment of a workspace, as people look at it. Immutable; unchanged parts are the same objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.model import Outcome, Row
from watchroom.projections.agents import AgentView, MessageReader, find_reader
from watchroom.projections.buffers import BufferView
from watchroom.projections.client_calls import ClientFile
from watchroom.projections.processes import OpenWork
from watchroom.projections.seals import SealView
from watchroom.projections.sessions import RequestView
from watchroom.projections.tasks import CommandView, MessageView, TaskView
from watchroom.projections.timeline import TimelineView
from watchroom.projections.usage import UsageView
from watchroom.rules.budgets import BudgetUse
from watchroom.rules.conflicts import ConflictView
from watchroom.rules.handoffs import Delivery
from watchroom.rules.needs import URGENCY, NeedAnswer, NeedKind, is_acknowledgeable, need_answers
from watchroom.rules.people import People
from watchroom.rules.requests import has_expired
from watchroom.rules.shown_commands import ResumeCommand, find_resume_command

BUCKET_SECONDS: Final = 5
BUCKETS: Final = 24
"""Activity is counted in so many buckets of so many seconds: two minutes."""


class Need(NamedTuple):
    """Something that waits for a person. ``key`` tells one need from another for as long as it lasts."""

    kind: NeedKind
    key: str
    row: Row
    """The newest row that tells of it."""
    against: str = ""
    """The other party: who wrote the current version, was written over, or should acknowledge; of lost
    processes and expired requests the agents, with commas."""
    times: int = 1
    since: int = 0
    """The row that opened it: what was settled and comes again has another one."""
    opened_at: int = 0
    """When that was, in nanoseconds since the epoch."""
    deadline: int | None = None
    """Until when it can be dealt with, in nanoseconds since the epoch; None where that has no end."""
    work: OpenWork = OpenWork()
    """What a lost process had to go on with."""
    paths: int = 1
    """The number of files that it is about: external edits that were found together are one need, and ``row``
    tells of the first of them."""
    folder: str = ""
    """The workspace's folder as the reader opened it, empty if it is not known."""

    @property
    def identity(self) -> tuple[NeedKind, str, int]:
        """The same for as long as it lasts, whatever is tried meanwhile; never that of another need."""
        return self.kind, self.key, self.since

    @property
    def agent(self) -> str:
        """Whose doing, or leaving undone, it is about; of several the first, of none an empty text."""
        if self.kind in ("lost", "expired"):
            return self.against.partition(", ")[0]
        if self.kind == "breaker":
            return self.row.path
        return self.against if self.kind == "stalled" else self.row.actor

    @property
    def resume(self) -> ResumeCommand:
        """The command that continues what was lost. Its process only chooses the form: each part is checked
        and quoted. If the process chose none, the command takes over an agent's session, or a task."""
        if self.kind != "lost":
            return ResumeCommand()
        return find_resume_command(self.row.message, self.work.agents, self.work.tasks, self.folder)

    @property
    def hint(self) -> str:
        """The text of `resume`."""
        return self.resume.text

    @property
    def answers(self) -> tuple[NeedAnswer, ...]:
        """What deals with it, the usual first."""
        return need_answers(self.kind, self.row)

    @property
    def is_acknowledgeable(self) -> bool:
        """Whether a person who looked and finds it fine can say so; a conflict has to be settled."""
        return is_acknowledgeable(self.kind, self.row.zone)


def order_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """``needs`` in the order in which a person should look at them: what has a deadline first, the nearest at
    the top; then by `URGENCY`, and of one kind what has waited longest."""
    return tuple(sorted(needs, key=_order_of))


def _order_of(need: Need) -> tuple[bool, int, int, int, int]:
    return need.deadline is None, need.deadline or 0, URGENCY.index(need.kind), need.opened_at, need.since


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


class ActivityEntry(NamedTuple):
    """A line of what happened: ``row``, or so many ``readings`` in a row, of which it is the newest."""

    row: Row
    readings: int = 0


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
    """The newest rows, newest first, without the steps of sessions with which no call of a client's own tool
    ended."""
    activity_log: tuple[ActivityEntry, ...] = ()
    """The same with readings in a row folded into one, and so further back, newest first."""
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
    client_files: tuple[ClientFile, ...] = ()
    """Those that agents edited last by their clients' own tools, by path. They have no versions."""
    documents: tuple[DocumentView, ...] = ()
    """By name."""
    boards: tuple[BoardView, ...] = ()
    """By name."""
    work: Mapping[str, OpenWork] = MappingProxyType({})
    """What each process has to go on with, by its lease."""
    usage: UsageView = UsageView()
    """What agents used."""
    budgets: tuple[BudgetUse, ...] = ()
    """How much is used of the team's budgets and those of its tasks and agents, the most used first."""
    leases: Mapping[str, Row] = MappingProxyType({})
    """The newest lease on each board that was not released, by the board's name. It may have run out."""
    stopped: Mapping[str, int] = MappingProxyType({})
    """The agents that a person paused together and nobody resumed since, each with the row that told it."""
    timeline: TimelineView = TimelineView()
    """How busy it was, and where something happened that people look for, since the first row."""
    people: People = People()
    """Who is enrolled."""
    seal: SealView | None = None
    """The newest checkpoint, None before the first."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    activity: Mapping[int, int] = MappingProxyType({})

    def conflicts_of(self, head: Row) -> list[ConflictView]:
        """The open conflicts on what ``head`` is a version of, newest first."""
        return [each for each in self.conflicts if (each.zone, each.path) == (head.zone, head.path)]

    def is_open(self, row: Row) -> bool:
        """Whether ``row``, a refused write or an edit made by hand, belongs to an open conflict."""
        return row.outcome == "conflict" and any(
            (each.zone, each.path, each.row.actor) == (row.zone, row.path, row.actor)
            and each.since.seq <= row.seq
            for each in self.conflicts
        )

    def buffers_of(self, agent_id: str) -> list[BufferView]:
        """The open buffers of the agent ``agent_id``, by name."""
        return [each for each in self.buffers if each.agent == agent_id]

    def agent(self, agent_id: str) -> AgentView | None:
        """The agent ``agent_id``, None if no such agent is registered."""
        return next((view for view in self.agents if view.agent.id == agent_id), None)

    def message_reader(self, agent_id: str) -> MessageReader:
        """When the agent ``agent_id`` reads what is sent to it now; never where none is registered."""
        view = self.agent(agent_id)
        lost = (need for need in self.needs if need.kind == "lost" and agent_id in need.work.agents)
        return MessageReader("never") if view is None else find_reader(view, next((n.hint for n in lost), ""))


HANDOFF_OVERDUE_SECONDS: Final = 120.0
"""So many seconds a handoff may wait for its receiver before a person should know."""
STALLED_SECONDS: Final = 300.0
"""So many seconds an agent may do nothing about what waits for it before a person should know."""


def urgent_needs(model: Model, now: int) -> tuple[Need, ...]:
    """The needs of ``model`` that a person should look at by ``now`` (nanoseconds since the epoch), in the
    order of `order_needs`.

    All that count or list needs call this, so that they agree. Handoffs that may still wait are left out, and
    requests that nobody can answer any more. An agent that does nothing about its handoffs is a need of the
    kind ``stalled``, in the place of the oldest of them: each thing that waits is one need.
    """
    horizon = now - int(HANDOFF_OVERDUE_SECONDS * 1e9)
    urgent = [need for need in model.needs if need.kind != "handoff" and not has_expired(need.deadline, now)]
    late = [need for need in model.needs if need.kind == "handoff" and need.row.time <= horizon]
    stalled = _stalled(model, late, now)
    covered = {need.row.seq for need in stalled}
    return order_needs((*urgent, *stalled, *(need for need in late if need.row.seq not in covered)))


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
