"""Ending agents and tasks: what a person is asked first, and what is done then."""

from __future__ import annotations

from functools import partial

from watchroom.model import END_TASK, TERMINATE
from watchroom.projections import Member, TaskView
from watchroom.texts import Catalogue

from watchroom_tui.columns import fit
from watchroom_tui.describe import MOST_NAMED, SUBJECT_WIDTH
from watchroom_tui.safe import safe
from watchroom_tui.steering import Steering
from watchroom_tui.task_tree import below


def end_agent(steering: Steering, task: TaskView, member: Member, words: Catalogue) -> None:
    """End an agent and all that it made, if the person means it."""
    name = safe(member.id)
    # Without its first agent a task does not go on.
    is_first = member.spawned is not None and not member.parent
    question = words("tasks.end_first" if is_first else "tasks.end_question", agent=name)
    made = below(task, member.id)
    if made:
        named = ", ".join(made[:MOST_NAMED]) + (" …" if len(made) > MOST_NAMED else "")
        question += f" {words('tasks.end_below', count=len(made), agents=safe(named))}"
    act = partial(steering.act_if_meant, words("tasks.end_title"), question)
    done = words("tasks.agent_ended", agent=name)
    steering.start(partial(act, TERMINATE, {"agent_id": member.id}, done))


def cancel_task(steering: Steering, task: TaskView, words: Catalogue) -> None:
    """End a task that nobody finished, if the person means it."""
    name = fit(safe(task.row.message), SUBJECT_WIDTH).rstrip()
    at_work = sum(each.ended is None for each in task.members)
    question = words("tasks.cancel_question", task=name, count=at_work)
    act = partial(steering.act_if_meant, words("tasks.cancel_title"), question)
    arguments = {"task_id": task.id, "status": "cancelled", "report": ""}
    steering.start(partial(act, END_TASK, arguments, words("tasks.cancelled", task=name)))
