"""The unfinished work of each process: sessions, tasks and commands, according to rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from watchroom.features.config.rows import Agent
from watchroom.features.sessions.rows import is_unfinished, presence_of, takes_over
from watchroom.features.tasks.rows import is_spawn, spawned_agent
from watchroom.model import LOST, SYSTEM, Row


class OpenWork(NamedTuple):
    """The unfinished work of a process.

    - ``agents``: ids of agents whose sessions have not ended.
    - ``tasks``: ids of open tasks whose agents the process ran.
    - ``commands``: paths of commands that have not ended.
    """

    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class NewestStep(NamedTuple):
    """The newest step of an agent's session.

    - ``presence``: the lease that a row named last.
    - ``is_unfinished``: whether the session has not ended.
    """

    row: Row
    presence: str
    is_unfinished: bool


def is_loss(row: Row) -> bool:
    """Return whether ``row`` reports a dead process. Its path is the lease."""
    return row.tool == LOST and row.actor == SYSTEM


class ProcessProjection:
    """The unfinished work of each process, by its lease. Takes rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": MappingProxyType({})}
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._agents: dict[str, NewestStep] = {}
        self._commands: dict[str, Row] = {}
        self._tasks: dict[str, str] = {}
        """The task of each agent, by the agent's id."""
        self._open_tasks: set[str] = set()
        self._lost_tasks: dict[str, set[str]] = {}
        """The leases of dead processes that ran agents of each task."""
        self._resumed: set[tuple[str, str]] = set()
        """Pairs of an expired lease and a task that another process has since resumed."""
        self._current: Mapping[str, OpenWork] = MappingProxyType({})
        self._changed = False

    def register(self, agents: Iterable[Agent]) -> None:
        """Add ``agents`` to the registered agents."""
        self._tasks.update((agent.id, agent.task) for agent in agents if agent.task)
        self._changed = True

    def apply_step(self, row: Row) -> None:
        """Apply ``row``, a step of a session."""
        known = self._agents.get(row.actor)
        if row.version is not None:
            step = NewestStep(row, presence_of(row), is_unfinished(row))
        elif takes_over(row) and known is not None and known.row.path == row.path:
            step = known._replace(presence=presence_of(row))
        else:
            return
        self._agents[row.actor] = step
        if known is None or known[1:] != step[1:]:
            self._changed = True
        task = self._tasks.get(row.actor, "")
        if task in self._lost_tasks:
            self._resumed.update((lease, task) for lease in self._lost_tasks.pop(task) - {step.presence})

    def apply(self, row: Row) -> None:
        """Apply ``row``, an operation."""
        if is_loss(row):
            for task in self.current().get(row.path, OpenWork()).tasks:
                self._lost_tasks.setdefault(task, set()).add(row.path)
        elif row.version is None:
            return
        elif row.zone == "command":
            if row.version == 1:
                self._commands[row.path] = row
            else:
                self._commands.pop(row.path, None)
            self._changed = True
        elif row.zone == "task":
            (self._open_tasks.add if row.version == 1 else self._open_tasks.discard)(row.path)
            self._changed = True
        elif is_spawn(row):
            self._tasks[row.path] = spawned_agent(row).task

    def end_agent(self, agent: str) -> None:
        """Remove the work of ``agent``, which has ended."""
        if self._agents.pop(agent, None) is not None:
            self._changed = True

    def current(self) -> Mapping[str, OpenWork]:
        """Return the unfinished work by lease, without processes that have none. Return the same object if
        nothing changed."""
        if self._changed:
            self._changed = False
            self._current = MappingProxyType(self._work())
        return self._current

    def lost_tasks(self) -> frozenset[str]:
        """Return the ids of open tasks that a row reports as lost and that no other process has resumed."""
        return frozenset(task for task in self._lost_tasks if task in self._open_tasks)

    def last_sign(self, presence: str) -> Row | None:
        """Return the newest row about the work of the process with the lease ``presence``, None if there is
        none."""
        steps = [step.row for step in self._agents.values() if step.presence == presence]
        return max(
            (*steps, *(row for row in self._commands.values() if presence_of(row) == presence)), default=None
        )

    def _work(self) -> dict[str, OpenWork]:
        agents: dict[str, list[str]] = defaultdict(list)
        tasks: dict[str, set[str]] = defaultdict(set)
        commands: dict[str, list[str]] = defaultdict(list)
        for agent, step in self._agents.items():
            if step.is_unfinished:
                agents[step.presence].append(agent)
            task = self._tasks.get(agent, "")
            if task in self._open_tasks and (step.presence, task) not in self._resumed:
                tasks[step.presence].add(task)
        for path, row in self._commands.items():
            commands[presence_of(row)].append(path)
        return {
            lease: OpenWork(
                tuple(sorted(agents.get(lease, ()))),
                tuple(sorted(tasks.get(lease, ()))),
                tuple(commands.get(lease, ())),
            )
            for lease in {*agents, *tasks, *commands} - {""}
        }
