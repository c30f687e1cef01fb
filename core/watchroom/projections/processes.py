"""What each process has to go on with: agents at work, tasks and commands, as rows tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from watchroom.model import LOST, SYSTEM, Row
from watchroom.rules.config import Agent
from watchroom.rules.members import is_spawn, spawned_agent
from watchroom.rules.presence import is_unfinished, presence_of, takes_over


class OpenWork(NamedTuple):
    """What the process of one lease has to go on with: ``agents`` whose session has not ended (ids),
    ``tasks`` that are open and whose agents it ran (ids), and ``commands`` without an end (paths)."""

    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class Step(NamedTuple):
    """Who runs an agent: the newest step of its session, the lease that was named last, and whether the
    session has to go on."""

    row: Row
    presence: str
    is_unfinished: bool


def is_loss(row: Row) -> bool:
    """Whether ``row`` says that a process is gone that had not said good-bye; its path is the lease."""
    return row.tool == LOST and row.actor == SYSTEM


class ProcessProjection:
    """Takes rows in order; gives what each process has to go on with, by its lease."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": MappingProxyType({})}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._agents: dict[str, Step] = {}
        self._commands: dict[str, Row] = {}
        self._tasks: dict[str, str] = {}
        """The open task of each agent, by its id."""
        self._open_tasks: set[str] = set()
        self._lost_tasks: dict[str, set[str]] = {}
        """By task, the leases of processes that are gone and ran agents of it."""
        self._resumed: set[tuple[str, str]] = set()
        """Leases that ran out, and tasks of theirs that another process has gone on with since."""
        self._current: Mapping[str, OpenWork] = MappingProxyType({})
        self._changed = False

    def register(self, agents: Iterable[Agent]) -> None:
        """Take ``agents`` for those that are registered from now on."""
        self._tasks.update((agent.id, agent.task) for agent in agents if agent.task)
        self._changed = True

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, one of how a session goes on."""
        known = self._agents.get(row.actor)
        if row.version is not None:
            step = Step(row, presence_of(row), is_unfinished(row))
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
        """Take in ``row``, which is no step."""
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
        """Nobody has to go on with ``agent``, which works no more."""
        if self._agents.pop(agent, None) is not None:
            self._changed = True

    def current(self) -> Mapping[str, OpenWork]:
        """What is left to do, by the lease of the process that has to do it; without those that have nothing
        left. The same object as before where nothing changed."""
        if self._changed:
            self._changed = False
            self._current = MappingProxyType(self._work())
        return self._current

    def lost_tasks(self) -> frozenset[str]:
        """The tasks (ids) whose process is gone by a row, and that no other one has gone on with since."""
        return frozenset(task for task in self._lost_tasks if task in self._open_tasks)

    def last_sign(self, presence: str) -> Row | None:
        """The newest row that tells of what the process with the lease ``presence`` runs, None if none
        does."""
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
