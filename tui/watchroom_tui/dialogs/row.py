"""A row of the journal: its content and all its fields."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from watchroom.features.overview.reads import read_client_call
from watchroom.features.sessions.rows import ClientCall, client_call
from watchroom.features.tasks.reads import parse_end
from watchroom.kernel.reads import find_content
from watchroom.model import Row, outcome_of

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.client_calls import client_call_lines
from watchroom_tui.formatters.columns import fit, size
from watchroom_tui.formatters.local_time import local_time, utc_offset
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.transcript import format_json
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.readers.output import output_lines
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_tui.widgets.version_timeline import version_name

ENDED: Final = 2
"""The version of a row that ends a command."""
JSON_ZONES: Final = ("session", "request", "task", "agent")
"""The zones with JSON contents."""


class RowDialog(Dialog):
    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        with Vertical(id="row"):
            yield TextPane(title="pane.content", empty="detail.no_content", id="content", classes="pane")
            yield TextPane(title="pane.detail", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        row, texts = self._row, self.dashboard.texts
        title = f"{texts('pane.detail')} {row.seq} · {utc_offset(row.time)}"
        self.query_one("#detail", TextPane).show_notice(row.seq, list(self._lines()), title=title)
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        app, row = self.dashboard, self._row
        call = client_call(row)
        if call is not None:
            text = await asyncio.to_thread(read_client_call, app.journal, row)
            lines = await asyncio.to_thread(client_call_lines, text, app.texts)
            title = sanitize(f"{call.tool} {call.about}".strip())
            self.query_one("#content", TextPane).show_notice(row.seq, lines, title=title)
            return
        content = await asyncio.to_thread(find_content, app.journal, row)
        self.query_one("#row").set_class(content is None, "-alone")
        if content is None:
            return
        view = self.query_one("#content", TextPane)
        title = labels.shown_path(row, app.texts)
        if row.zone == "command" and row.version == ENDED:
            lines = await asyncio.to_thread(lambda: output_lines(parse_end(content), app.texts))
            view.show_notice(row.seq, lines, title=sanitize(row.message))
        elif row.zone in JSON_ZONES:
            view.show_text(row.seq, await asyncio.to_thread(format_json, content), title=title)
        else:
            view.show_text(row.seq, content, title=title)

    def _lines(self) -> Iterator[Line]:
        texts, row = self.dashboard.texts, self._row
        outcome, call = texts(f"outcome.{outcome_of(row)}"), client_call(row)
        fields = {
            "time": local_time(row.time, "milliseconds"),
            "actor": row.actor,
            "message": row.message,
            "tool": f"{labels.tool_label(row, texts)} · {row.tool}",
            "path": f"{labels.zone_name(row.zone, texts)} · {_path_of(row)}",
            "version": _versions(row),
            "outcome": f"{outcome} · {row.error}" if row.error else outcome,
            "files": "" if call is None else _files_of(call),
            "size": f"{size(row.size)} · sha-256 {row.sha256}" if row.size is not None else "",
        }
        for name, value in fields.items():
            if value:
                yield [Span(fit(f" {texts(f'detail.{name}')}", 12), "dim"), Span(sanitize(value))]
        for line in sanitize_lines(format_json(row.detail_json)) if row.detail_json else ():
            yield [Span(f" {line}", "dim")]


def _files_of(call: ClientCall) -> str:
    """Return the files that ``call`` wrote, and the number of unlisted files."""
    return ", ".join(call.paths) + (f" … +{call.left_out}" if call.left_out else "")


def _versions(row: Row) -> str:
    """Return the version before ``row`` and the new version, or a sign if the row was refused."""
    started = f"v{row.base}" if row.base is not None and row.base > 0 else ""
    made = "" if row.outcome == "ok" and row.version is None else version_name(row)
    return " → ".join(filter(None, (started, made)))


def _path_of(row: Row) -> str:
    """Return the path of ``row``, with the name of a working tree instead of its id."""
    return labels.place_text(row.zone, row.path, has_trees=True).removeprefix(f"{row.zone}/")
