"""One row of the journal, whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from textual import work
from textual.app import ComposeResult
from textual.screen import ModalScreen
from watchroom.model import Row

from watchroom_tui.columns import fit, size
from watchroom_tui.safe import safe, safe_lines
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class RowScreen(ModalScreen[None]):
    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        yield TextView(title="pane.detail", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app = cast("WatchroomApp", self.app)
        content = await asyncio.to_thread(app.journal.content, self._row.seq)
        title = f"{app.words('pane.detail')} {self._row.seq}"
        self.query_one(TextView).show_lines(
            self._row.seq, [*self._fields(), *self._content(content)], title=title
        )

    def _fields(self) -> list[Line]:
        words, row = cast("WatchroomApp", self.app).words, self._row
        fields = {
            "time": row.timestamp,
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

    def _content(self, content: str | None) -> list[Line]:
        words = cast("WatchroomApp", self.app).words
        if content is None:
            return [[], [Span(f" {words('detail.no_content')}", "dim")]]
        head: list[Line] = [[], [Span(f" {words('detail.content')}", "title")], []]
        return head + [[Span(" " + line)] for line in safe_lines(content)]
