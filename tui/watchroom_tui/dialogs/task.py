"""All details of one task."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from textual import work
from textual.app import ComposeResult
from watchroom.projections import TaskView
from watchroom.texts import Catalogue

from watchroom_tui import describe
from watchroom_tui.columns import fit
from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.local_time import zoned_time
from watchroom_tui.sanitize import sanitize, sanitize_lines
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.widgets.text_view import TextView

LIMITS = ("depth", "agents", "steps")


class TaskDialog(Dialog):
    def __init__(self, task: TaskView) -> None:
        super().__init__()
        self._about = task

    def compose(self) -> ComposeResult:
        yield TextView(title="tasks.title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app, task = self.watchroom, self._about

        def read() -> list[Line]:
            return task_lines(task, app.journal.content(task.row.seq), app.texts)

        lines = await asyncio.to_thread(read)
        title = f"{app.texts('tasks.title')} · {app.texts('help.close')}"
        self.query_one(TextView).show_notice(task.id, lines, title=title)


def task_lines(task: TaskView, content: str | None, texts: Catalogue) -> list[Line]:
    """The task as people read it; ``content`` is that of its first row."""
    record: Mapping[str, Any] = json.loads(content or "{}")
    limits = record.get("limits", {})
    fields = {
        "by": task.row.actor,
        "begun": zoned_time(task.row.time),
        "folder": task.folder or texts("tasks.no_folder"),
        "limits": texts("tasks.most", **{name: limits.get(name, "–") for name in LIMITS}),
        "status": describe.task_status(task.status, texts),
    }
    if task.ended is not None:
        fields |= {"ended": zoned_time(task.ended.time), "ended_by_whom": task.ended.actor}
        fields |= {"report": task.ended.message} if task.ended.message else {}
    lines: list[Line] = [
        [Span(fit(f" {texts(f'tasks.field.{name}')}", 14), "dim"), Span(sanitize(value))]
        for name, value in fields.items()
    ]
    asked = sanitize_lines(str(record.get("requirement", task.row.message)).strip("\n"))
    head = Span(f" {texts('tasks.field.asked')}", "title")
    return [*lines, [], [head], [], *([Span(" "), Span(line)] for line in asked)]
