"""All fields and the content of one row."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from watchroom.model import Row

from watchroom_tui.columns import fit, size
from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.local_time import zoned_time
from watchroom_tui.readers.output import read_ended
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.widgets.text_view import TextView

ENDED = 2
"""The version of a command's row with which it ends."""


class RowDialog(Dialog):
    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        yield TextView(title="pane.detail", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app = self.watchroom
        content = await asyncio.to_thread(app.journal.content, self._row.seq)
        title = f"{app.texts('pane.detail')} {self._row.seq}"
        view = self.query_one(TextView)
        if content is None:
            nothing: list[Line] = [[], [Span(f" {app.texts('detail.no_content')}", "dim")]]
            view.show_notice(self._row.seq, [*self._fields(), *nothing], title=title)
            return
        head: list[Line] = [[], [Span(f" {app.texts('detail.content')}", "title")], []]
        if self._row.zone == "command" and self._row.version == ENDED:
            lines = await asyncio.to_thread(read_ended, content, app.texts)
            view.show_notice(self._row.seq, [*self._fields(), *head, *lines], title=title)
        else:
            view.show_text(self._row.seq, content, title=title, head=[*self._fields(), *head])

    def _fields(self) -> list[Line]:
        texts, row = self.watchroom.texts, self._row
        fields = {
            "time": zoned_time(row.time, "milliseconds"),
            "actor": row.actor,
            "tool": row.tool,
            "zone": row.zone,
            "path": row.path,
            "version": row.version,
            "base": row.base,
            "outcome": row.outcome,
            "error": row.error,
            "message": row.message,
            "size": size(row.size) if row.size is not None else None,
            "checksum": row.sha256,
            "more": row.detail_json,
        }
        return [
            [Span(fit(f" {texts(f'detail.{name}')}", 14), "dim"), Span(sanitize(str(value)))]
            for name, value in fields.items()
            if value not in (None, "")
        ]
