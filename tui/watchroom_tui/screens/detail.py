"""One row of the journal, whole."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from watchroom.model import Row

from watchroom_tui.columns import fit, size
from watchroom_tui.local_time import zoned_time
from watchroom_tui.output_reading import read_ended
from watchroom_tui.safe import safe
from watchroom_tui.screens.sheet import Sheet
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.text_view import TextView

ENDED = 2
"""The version of a command's row with which it ends."""


class RowScreen(Sheet):
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
        title = f"{app.words('pane.detail')} {self._row.seq}"
        view = self.query_one(TextView)
        if content is None:
            nothing: list[Line] = [[], [Span(f" {app.words('detail.no_content')}", "dim")]]
            view.show_words(self._row.seq, [*self._fields(), *nothing], title=title)
            return
        head: list[Line] = [[], [Span(f" {app.words('detail.content')}", "title")], []]
        if self._row.zone == "command" and self._row.version == ENDED:
            lines = await asyncio.to_thread(read_ended, content, app.words)
            view.show_words(self._row.seq, [*self._fields(), *head, *lines], title=title)
        else:
            view.show_text(self._row.seq, content, title=title, head=[*self._fields(), *head])

    def _fields(self) -> list[Line]:
        words, row = self.watchroom.words, self._row
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
            [Span(fit(f" {words(f'detail.{name}')}", 14), "dim"), Span(safe(str(value)))]
            for name, value in fields.items()
            if value not in (None, "")
        ]
