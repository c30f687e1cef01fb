"""The model: the state of a workspace at one moment, as people see it. Immutable; unchanged parts are the
same objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.features.boards.rows import BOARD_ZONE
from watchroom.features.boards.view import BoardView
from watchroom.features.budgets.rules import BudgetUse
from watchroom.features.budgets.view import UsageView
from watchroom.features.buffers.view import BufferView
from watchroom.features.documents.view import DocumentView
from watchroom.features.files.view import SharedFile
from watchroom.features.handoffs.rows import HANDOFF_NEED, Delivery
from watchroom.features.needs.rules import URGENCY, NeedAnswer, NeedKind, is_acknowledgeable, need_answers
from watchroom.features.overview.agents import AgentView, MessageReader, find_reader
from watchroom.features.overview.client_files import ClientFile
from watchroom.features.overview.processes import OpenWork
from watchroom.features.overview.timeline import TimelineView
from watchroom.features.people.rows import People
from watchroom.features.plans.rows import Plan
from watchroom.features.policy.shown_commands import ResumeCommand, find_resume_command
from watchroom.features.requests.rows import has_expired
from watchroom.features.sessions.view import RequestView
from watchroom.features.tasks.view import CommandView, MessageView, TaskView
from watchroom.features.trees.comments import TreeComment
from watchroom.features.trees.rows import REPO, Prediction, Tree
from watchroom.kernel.rules.conflicts import ConflictView
from watchroom.model import Outcome, Row, Zone


class Need(NamedTuple):
    """An item that waits for a person. ``key``: its id among the open needs of its kind."""

    kind: NeedKind
    key: str
    row: Row
    """The newest row about the need."""
    against: str = ""
    """The other party of the need. For a conflict, the author of the current or the replaced version. For a
    handoff, the receiver. For lost processes and expired requests, the agents, separated by commas."""
    times: int = 1
    since: int = 0
    """The row that opened the need. A need that is opened again has another row."""
    opened_at: int = 0
    """The time at which the need was opened, in nanoseconds since the epoch."""
    deadline: int | None = None
    """The deadline for an action, in nanoseconds since the epoch; None if there is none."""
    work: OpenWork = OpenWork()
    """The unfinished work of a lost process. For a parked agent without a process, the agent."""
    command: str = ""
    """The command that a parked agent's process recorded, if the process has died."""
    client: str = ""
    """The client that a person starts again to continue the work of an ended process, empty if a command
    continues it."""
    paths: int = 1
    """The number of files. External edits that were found together are one need, and ``row`` is the first
    edit."""
    folder: str = ""
    """The workspace's folder as the reader opened it, empty if unknown."""

    @property
    def identity(self) -> tuple[NeedKind, str, int]:
        """The identity of the need, which stays the same until it is closed."""
        return self.kind, self.key, self.since

    @property
    def agent(self) -> str:
        """The agent that caused the need, or that should act. The first of several agents; empty if there is
        none."""
        if self.kind in ("lost", "expired"):
            return self.against.partition(", ")[0]
        if self.kind in ("breaker", "unproven"):
            return self.row.path
        return self.against if self.kind == "stalled" else self.row.actor

    @property
    def resume(self) -> ResumeCommand:
        """The command that resumes a lost process, checked and quoted.

        The process only recorded the command's form. If it recorded none, the command takes over an agent's
        session or a task.
        """
        if self.client or (not self.work.agents and self.kind != "lost"):
            return ResumeCommand()
        recorded = self.command if self.kind == "parked" else self.row.message
        return find_resume_command(recorded, self.work.agents, self.work.tasks, self.folder)

    @property
    def hint(self) -> str:
        """The text of `resume`."""
        return self.resume.text

    @property
    def answers(self) -> tuple[NeedAnswer, ...]:
        """The possible answers of a person, the usual answer first. Without a process, a parked agent is
        resumed only by a command."""
        answers = need_answers(self.kind, self.row)
        if self.kind != "parked" or not self.work.agents:
            return answers
        return tuple(each for each in answers if each not in ("leave", "resume"))

    @property
    def is_acknowledgeable(self) -> bool:
        """Whether a person can close the need by marking it as seen. A conflict must be settled."""
        return is_acknowledgeable(self.kind, self.row.zone)


def order_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return ``needs`` in the order in which a person should handle them.

    Needs with a deadline come first, by deadline. The others follow by `URGENCY`, then oldest first.
    """
    return tuple(sorted(needs, key=_order_of))


def _order_of(need: Need) -> tuple[bool, int, int, int, int]:
    return need.deadline is None, need.deadline or 0, URGENCY.index(need.kind), need.opened_at, need.since


class SealView(NamedTuple):
    """The newest seal of the journal. It covers the first ``size`` leaves, and ``row`` is the last of them.

    ``root``: the first eight hex digits of its root.
    """

    size: int
    row: int
    root: str


class ActivityEntry(NamedTuple):
    """A line of the activity list: ``row``, or several successive reads of one agent (``readings``), of which
    ``row`` is the newest. A client's read and the row of its file are one read."""

    row: Row
    readings: int = 0


class Model(NamedTuple):
    """Everything that the dashboard shows, as of row ``seq``."""

    seq: int = 0
    time: int = 0
    agents: tuple[AgentView, ...] = ()
    needs: tuple[Need, ...] = ()
    conflicts: tuple[ConflictView, ...] = ()
    """The open conflicts, newest first. Each is also a need."""
    requests: tuple[RequestView, ...] = ()
    """The open requests to people, newest first. Each is also a need."""
    ended_requests: tuple[RequestView, ...] = ()
    """The newest requests that have ended, newest first."""
    recent: tuple[Row, ...] = ()
    """The newest operations, newest first. Of the steps of sessions, only the ends of calls of clients' own
    tools are included."""
    activity_log: tuple[ActivityEntry, ...] = ()
    """The newest operations, newest first, with successive reads as one entry. It goes further back than
    ``recent``."""
    newest: tuple[Row, ...] = ()
    """The newest rows of any kind, newest first."""
    deliveries: tuple[Delivery, ...] = ()
    """The handoffs, newest first."""
    tasks: tuple[TaskView, ...] = ()
    """The tasks, newest first."""
    messages: tuple[MessageView, ...] = ()
    """The newest messages of agents and people, newest first."""
    commands: tuple[CommandView, ...] = ()
    """The newest commands that agents ran in their tasks' folders, newest first."""
    buffers: tuple[BufferView, ...] = ()
    """The open buffers, by agent and name."""
    plans: Mapping[str, Plan] = MappingProxyType({})
    """The active plans, by agent."""
    files: tuple[SharedFile, ...] = ()
    """The shared files, by path."""
    trees: tuple[Tree, ...] = ()
    """The working trees of the repository, by id. Empty outside of a repository."""
    tries: Mapping[str, Row] = MappingProxyType({})
    """The newest try of agents' work in each tree, by the tree's id."""
    predictions: Mapping[tuple[str, str], Prediction] = MappingProxyType({})
    """The conflicts that a merge of two trees would have, by the trees' ids."""
    comments: tuple[TreeComment, ...] = ()
    """People's comments on lines that agents changed in working trees, oldest first."""
    tree_files: tuple[SharedFile, ...] = ()
    """The files with versions in working trees, by the paths of their rows."""
    client_files: tuple[ClientFile, ...] = ()
    """The files that agents edited most recently with their clients' own tools, by path. They have no
    versions."""
    documents: tuple[DocumentView, ...] = ()
    """The realtime documents, by name."""
    boards: tuple[BoardView, ...] = ()
    """The whiteboards, by name."""
    work: Mapping[str, OpenWork] = MappingProxyType({})
    """The unfinished work of each process, by its lease."""
    usage: UsageView = UsageView()
    """The usage of agents."""
    budgets: tuple[BudgetUse, ...] = ()
    """The use of the budgets of the team, of tasks and of agents, most used first."""
    leases: Mapping[str, Row] = MappingProxyType({})
    """The newest lock of each board that was not released, by the board's name. The lock may have expired."""
    stopped: Mapping[str, int] = MappingProxyType({})
    """The agents that a person paused together and that nobody has resumed, each with the row of the
    pause."""
    is_everybody_stopped: bool = False
    """Whether a person paused everybody, also agents that begin later."""
    timeline: TimelineView = TimelineView()
    """The amount of activity since the first row, and the times of notable events."""
    people: People = People()
    """The enrolled people."""
    seal: SealView | None = None
    """The newest seal, None before the first."""
    has_checks: bool = False
    """Whether the settings have checks of agents that say that they are done."""
    outcomes: Mapping[Outcome, int] = MappingProxyType({})
    activity: Mapping[int, int] = MappingProxyType({})

    def heads_of(self, zone: Zone) -> tuple[SharedFile, ...] | tuple[BoardView, ...]:
        """Return the current versions in ``zone``, a zone in which several agents write."""
        if zone == BOARD_ZONE:
            return self.boards
        return self.tree_files if zone == REPO else self.files

    def conflicts_of(self, head: Row) -> list[ConflictView]:
        """Return the open conflicts on the path of ``head``, newest first."""
        return [each for each in self.conflicts if (each.zone, each.path) == (head.zone, head.path)]

    def is_open(self, row: Row) -> bool:
        """Return whether ``row``, a refused write or an external edit, belongs to an open conflict."""
        return row.outcome == "conflict" and any(
            (each.zone, each.path, each.row.actor) == (row.zone, row.path, row.actor)
            and each.since.seq <= row.seq
            for each in self.conflicts
        )

    def buffers_of(self, agent_id: str) -> list[BufferView]:
        """Return the open buffers of the agent ``agent_id``, by name."""
        return [each for each in self.buffers if each.agent == agent_id]

    def agent(self, agent_id: str) -> AgentView | None:
        """Return the agent ``agent_id``, None if it is not registered."""
        return next((view for view in self.agents if view.agent.id == agent_id), None)

    def message_reader(self, agent_id: str) -> MessageReader:
        """Return when the agent ``agent_id`` would read a message that is sent now; ``never`` if it is not
        registered."""
        view = self.agent(agent_id)
        lost = (
            need for need in self.needs if need.kind in ("lost", "parked") and agent_id in need.work.agents
        )
        return MessageReader("never") if view is None else find_reader(view, next((n.hint for n in lost), ""))


HANDOFF_OVERDUE_SECONDS: Final = 120.0
"""Seconds that a handoff may wait for its receiver before it is a need."""
STALLED_SECONDS: Final = 300.0
"""Seconds that an agent may ignore its overdue handoffs before it counts as stalled."""


def urgent_needs(model: Model, now: int) -> tuple[Need, ...]:
    """Return the needs of ``model`` for a person at ``now`` (nanoseconds since the epoch), in the order of
    `order_needs`.

    All code that counts or lists needs must call this, so that the numbers agree. Expired requests are left
    out, and so are handoffs that are not overdue. An agent that ignores its handoffs is one need of the kind
    ``stalled``, which replaces its oldest overdue handoff.
    """
    horizon = now - int(HANDOFF_OVERDUE_SECONDS * 1e9)
    urgent = [
        need for need in model.needs if need.kind != HANDOFF_NEED and not has_expired(need.deadline, now)
    ]
    late = [need for need in model.needs if need.kind == HANDOFF_NEED and need.row.time <= horizon]
    stalled = _stalled(model, late, now)
    covered = {need.row.seq for need in stalled}
    return order_needs((*urgent, *stalled, *(need for need in late if need.row.seq not in covered)))


def _stalled(model: Model, late: Sequence[Need], now: int) -> list[Need]:
    """Return one need for each agent that ignores its overdue handoffs ``late``. The need is for the oldest
    handoff. An agent that waits for a person, or is paused or parked, does not ignore them."""
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
        if view.agent.id in waiting
        and (view.last is None or view.last.time <= horizon)
        and view.status(now) not in ("waiting", "paused", "parked")
    ]
