"""Ending agents and tasks: what a person is asked first, and what is done then."""

from __future__ import annotations

from functools import partial

from watchroom.model import END_TASK, TERMINATE
from watchroom.projections import Member, TaskView
from watchroom.texts import Catalogue

from watchroom_tui.columns import fit
from watchroom_tui.describe import MOST_NAMED, SUBJECT_WIDTH
from watchroom_tui.sanitize import sanitize
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.task_tree import below


def end_agent(agent_actions: AgentActions, task: TaskView, member: Member, texts: Catalogue) -> None:
    """End an agent and all that it made, if the person means it."""
    name = sanitize(member.id)
    # Without its first agent a task does not go on.
    is_first = member.spawned is not None and not member.parent
    question = texts("tasks.end_first" if is_first else "tasks.end_question", agent=name)
    made = below(task, member.id)
    if made:
        named = ", ".join(made[:MOST_NAMED]) + (" …" if len(made) > MOST_NAMED else "")
        question += f" {texts('tasks.end_below', count=len(made), agents=sanitize(named))}"
    act = partial(agent_actions.confirm_and_act, texts("tasks.end_title"), question)
    done = texts("tasks.agent_ended", agent=name)
    agent_actions.start(partial(act, TERMINATE, {"agent_id": member.id}, done))


def cancel_task(agent_actions: AgentActions, task: TaskView, texts: Catalogue) -> None:
    """End a task that nobody finished, if the person means it."""
    name = fit(sanitize(task.row.message), SUBJECT_WIDTH).rstrip()
    at_work = sum(each.ended is None for each in task.members)
    question = texts("tasks.cancel_question", task=name, count=at_work)
    act = partial(agent_actions.confirm_and_act, texts("tasks.cancel_title"), question)
    arguments = {"task_id": task.id, "status": "cancelled", "report": ""}
    agent_actions.start(partial(act, END_TASK, arguments, texts("tasks.cancelled", task=name)))
