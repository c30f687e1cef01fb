"""All details of one task."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from watchroom.features.tasks.reads import TaskDetails, read_task
from watchroom.features.tasks.view import TaskView
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.widgets.text_pane import TextPane

LIMITS = ("depth", "agents", "steps")


class TaskDialog(Dialog):
    def __init__(self, task: TaskView) -> None:
        super().__init__()
        self._about = task

    def compose(self) -> ComposeResult:
        yield TextPane(title="tasks.title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app, task = self.dashboard, self._about

        details = await asyncio.to_thread(read_task, app.journal, task)
        title = f"{app.texts('tasks.title')} · {app.texts('help.close')}"
        self.query_one(TextPane).show_notice(task.id, task_lines(task, details, app.texts), title=title)


def task_lines(task: TaskView, details: TaskDetails, texts: Catalogue) -> list[Line]:
    """The task as people read it."""
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
