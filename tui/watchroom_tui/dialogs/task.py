"""All details of one task."""

from __future__ import annotations

import asyncio

from textual import work
from watchroom.features.tasks.reads import TaskDetails, read_task
from watchroom.features.tasks.view import TaskView
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import LinesDialog
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

LIMITS = ("depth", "agents", "steps")


class TaskDialog(LinesDialog):
    TITLE_KEY = "tasks.title"

    def __init__(self, task: TaskView) -> None:
        super().__init__()
        self._about = task

    def on_mount(self) -> None:
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app, task = self.dashboard, self._about
        details = await asyncio.to_thread(read_task, app.journal, task)
        self.show_lines(task_lines(task, details, app.texts))


def task_lines(task: TaskView, details: TaskDetails, texts: Catalogue) -> list[Line]:
    """Return the displayed lines with all details of ``task``."""
    fields = {
        "by": task.row.actor,
        "begun": zoned_time(task.row.time),
        "folder": task.folder or texts("tasks.no_folder"),
        "limits": texts("tasks.most", **{name: details.limits.get(name, "–") for name in LIMITS}),
        "status": labels.task_status(task.status, texts),
    }
    if task.ended is not None:
        fields |= {"ended": zoned_time(task.ended.time), "ended_by_whom": task.ended.actor}
        fields |= {"report": task.ended.message} if task.ended.message else {}
    lines: list[Line] = [
        [Span(fit(f" {texts(f'tasks.field.{name}')}", 14), "dim"), Span(sanitize(value))]
        for name, value in fields.items()
    ]
    asked = sanitize_lines(details.requirement.strip("\n"))
    head = Span(f" {texts('tasks.field.asked')}", "title")
    return [*lines, [], [head], [], *([Span(" "), Span(line)] for line in asked)]
