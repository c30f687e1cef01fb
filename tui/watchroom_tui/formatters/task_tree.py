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
    """An agent of a task with its place in the tree: ``guides`` are the lines that lead to it. ``view`` is
    None where it is not registered yet; ``command`` is what it is running, ``resume`` the command that goes
    on with it where it is not seen alive."""

    member: Member
    guides: str
    view: AgentView | None
    command: CommandView | None
    resume: str = ""


class Loss(NamedTuple):
    """Since when (nanoseconds since the epoch) something is not seen alive, and the command that goes on with
    it, empty where none is known."""

    since: int
    resume: str = ""


class TaskItem(NamedTuple):
    """A task, how many of its agents wait for a person, and its loss where nobody is seen to run it."""

    task: TaskView
    waiting: int
    loss: Loss | None = None

    @property
    def at_work(self) -> int:
        """How many of its agents have not ended."""
        return sum(each.ended is None for each in self.task.members)


def task_items(model: Model) -> tuple[TaskItem, ...]:
    """The tasks of the model, newest first."""
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
    """The agents of a task, each beneath the one that made it."""
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
    """Those that an agent made, and that these made, as far as they still work."""
    found = {agent}
    for each in task.members:
        if each.parent in found:
            found.add(each.id)
    return [each.id for each in task.members if each.id in found - {agent} and each.ended is None]


def ended_agents(tasks: Iterable[TaskView]) -> dict[str, Row]:
    """All agents that work no more, each with the row that ended it."""
    return {each.id: each.ended for task in tasks for each in task.members if each.ended is not None}


def resume_commands(model: Model) -> dict[str, str]:
    """By agent, the command that goes on with what its process left that is not seen alive."""
    lost = (need for need in model.needs if need.kind == "lost")
    return {agent: need.hint for need in lost for agent in need.work.agents}


def find_loss(task: TaskView, model: Model) -> Loss | None:
    """Since when nobody is seen to run ``task``, and how it is resumed; None where it is not lost."""
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
    """The tree's lines before each of these, which stand in the order of the tree."""
    found: list[str] = []
    goes_on: set[int] = set()
    """At which depths another one follows beneath the same parent."""
    for depth in reversed(depths):
        lead = "".join("│ " if each in goes_on else "  " for each in range(1, depth))
        own = "├ " if depth in goes_on else "╰ "
        found.append(lead + own if depth else "")
        goes_on = {each for each in goes_on if each < depth} | {depth}
    return found[::-1]
