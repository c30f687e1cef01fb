"""The agents of a task as a tree of parents and children. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model
from watchroom.features.tasks.rules import Member
from watchroom.features.tasks.view import CommandView, TaskView
from watchroom.model import Row


class MemberItem(NamedTuple):
    """An agent of a task, and its place in the tree.

    - ``guides``: the lines that lead to the agent.
    - ``view``: None before the agent is registered.
    - ``command``: the command that the agent runs, if any.
    - ``resume``: the command that resumes a lost agent.
    """

    member: Member
    guides: str
    view: AgentView | None
    command: CommandView | None
    resume: str = ""


class Loss(NamedTuple):
    """The time of a loss (nanoseconds since the epoch), and the command that resumes the lost task, empty if
    unknown."""

    since: int
    resume: str = ""


class TaskItem(NamedTuple):
    """A task, the number of its agents that wait for a person, and its loss if no process runs the task."""

    task: TaskView
    waiting: int
    loss: Loss | None = None

    @property
    def at_work(self) -> int:
        """Number of agents of the task that have not ended."""
        return sum(each.ended is None for each in self.task.members)


def task_items(model: Model) -> tuple[TaskItem, ...]:
    """Return the tasks of the model, newest first."""
    if not model.tasks:
        return ()
    asking = {view.agent.id for view in model.agents if view.request is not None}
    return tuple(
        TaskItem(
            task,
            sum(each.id in asking and each.ended is None for each in task.members),
            find_loss(task, model),
        )
        for task in model.tasks
    )


def member_items(task: TaskView, model: Model) -> tuple[MemberItem, ...]:
    """Return the agents of a task, each agent below its parent."""
    views = {view.agent.id: view for view in model.agents}
    running = {
        each.begun.actor: each
        for each in model.commands
        if each.ended is None and not each.is_lost and each.task == task.id
    }
    resumes = resume_commands(model)
    guides = _guides([each.depth for each in task.members])
    return tuple(
        MemberItem(each, guide, views.get(each.id), running.get(each.id), resumes.get(each.id, ""))
        for each, guide in zip(task.members, guides, strict=True)
    )


def below(task: TaskView, agent: str) -> list[str]:
    """Return the descendants of an agent that have not ended."""
    found = {agent}
    for each in task.members:
        if each.parent in found:
            found.add(each.id)
    return [each.id for each in task.members if each.id in found - {agent} and each.ended is None]


def ended_agents(tasks: Iterable[TaskView]) -> dict[str, Row]:
    """Return all ended agents with the row that ended each agent."""
    return {each.id: each.ended for task in tasks for each in task.members if each.ended is not None}


def resume_commands(model: Model) -> dict[str, str]:
    """Return the commands that resume lost agents, by agent."""
    lost = (need for need in model.needs if need.kind in ("lost", "parked"))
    return {agent: need.hint for need in lost for agent in need.work.agents}


def find_loss(task: TaskView, model: Model) -> Loss | None:
    """Return the loss of ``task``, None if it is not lost."""
    if not task.is_lost or task.ended is not None:
        return None
    needs = (need for need in model.needs if need.kind == "lost" and task.id in need.work.tasks)
    need = next(needs, None)
    if need is not None:
        return Loss(need.opened_at, need.hint)
    ids = {each.id for each in task.members}
    heard = (view.last_heard for view in model.agents if view.agent.id in ids)
    return Loss(max(heard, default=task.row.time))


def _guides(depths: Sequence[int]) -> list[str]:
    """Return the guides of the tree for ``depths``, which are in the order of the tree."""
    found: list[str] = []
    goes_on: set[int] = set()
    """The depths with a following sibling."""
    for depth in reversed(depths):
        lead = "".join("│ " if each in goes_on else "  " for each in range(1, depth))
        own = "├ " if depth in goes_on else "╰ "
        found.append(lead + own if depth else "")
        goes_on = {each for each in goes_on if each < depth} | {depth}
    return found[::-1]
