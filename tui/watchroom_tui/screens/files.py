"""The shared files: each with its versions as a timeline, and what a version changed."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from watchroom.model import Row
from watchroom.projections import Model, SharedFile

from watchroom_tui.actions import bindings
from watchroom_tui.safe import safe
from watchroom_tui.screens.detail import RowScreen
from watchroom_tui.screens.question import QuestionScreen
from watchroom_tui.screens.room import Room
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.widgets.lists import SharedFileList, VersionList
from watchroom_tui.widgets.text_view import TextView
from watchroom_tui.work import DiffLine

VERSIONS_SHOWN = 500
"""The timeline shows the newest so many versions."""


class FilesRoom(Room):
    ROOM: ClassVar = "files"
    BINDINGS = bindings("files")

    def __init__(self) -> None:
        super().__init__()
        self._to_current = False
        self._shown_file: SharedFile | None = None
        self._shown_diff: tuple[int, int, bool] | None = None
        self._wanted_seq: int | None = None

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            with Vertical(id="left", classes="group"):
                yield SharedFileList(title="pane.shared", empty="empty.shared", id="shared", classes="pane")
                yield VersionList(
                    title="pane.versions", empty="empty.versions", id="versions", classes="pane"
                )
            yield TextView(title="pane.diff", empty="empty.diff", id="diff", classes="pane")

    def show_model(self, model: Model) -> None:
        self.query_one("#shared", SharedFileList).show(model.files)
        self._show_versions()

    def go_to(self, row: Row) -> None:
        """To the file of ``row``, and to that row on its timeline."""
        shared = self.query_one("#shared", SharedFileList)
        shared.show(self.watchroom.model.files)
        if not shared.move_to(row.path):
            # Nothing was ever accepted under this name: there is the row alone.
            self.app.push_screen(RowScreen(row))
            return
        self._wanted_seq = row.seq
        self._shown_file = None
        self._show_versions()
        self.front(self.query_one("#versions", VersionList))

    def action_flip_diff(self) -> None:
        self._to_current = not self._to_current
        self._show_diff()

    @on(LineList.Highlighted, "#shared")
    def choose_file(self) -> None:
        self._show_versions()

    @on(LineList.Highlighted, "#versions")
    def choose_version(self) -> None:
        self._show_diff()

    @on(LineList.Opened, "#shared")
    def open_file(self) -> None:
        self.front(self.query_one("#versions", VersionList))

    @on(LineList.Opened, "#versions")
    def open_version(self) -> None:
        self.front(self.query_one("#diff", TextView))

    def _show_versions(self) -> None:
        file = self.query_one("#shared", SharedFileList).item
        if file is not self._shown_file:
            self._shown_file = file
            if file is None:
                self.query_one("#versions", VersionList).show(())
                self.query_one("#diff", TextView).clear()
            else:
                self.load_versions(file)

    @work(exclusive=True, group="versions")
    async def load_versions(self, file: SharedFile) -> None:
        journal, as_of = self.watchroom.journal, self.watchroom.model.seq

        def read() -> list[Row]:
            newest = file.head.version or 0
            rows = journal.history("collab", file.path, after_version=max(0, newest - VERSIONS_SHOWN))
            refused = journal.refused("collab", file.path, before=as_of + 1, limit=VERSIONS_SHOWN)
            oldest = rows[0].seq if rows else 0
            both = [*(row for row in rows if row.seq <= as_of), *(row for row in refused if row.seq > oldest)]
            return sorted(both, key=lambda row: -row.seq)

        versions = self.query_one("#versions", VersionList)
        versions.show(await asyncio.to_thread(read))
        if self._wanted_seq is not None:
            versions.move_to(self._wanted_seq)
            self._wanted_seq = None
        self._show_diff()

    def _show_diff(self) -> None:
        row, file = self.query_one("#versions", VersionList).item, self._shown_file
        if row is None or file is None:
            return
        wanted = (row.seq, file.head.seq if self._to_current else 0, self._to_current)
        if wanted != self._shown_diff:
            self._shown_diff = wanted
            self.load_diff(file, row)

    @work(exclusive=True, group="diff")
    async def load_diff(self, file: SharedFile, row: Row) -> None:
        journal, words = self.watchroom.journal, self.watchroom.words
        base_version = (row.version or 0) - 1 if row.version is not None else max(0, row.base or 0)

        def read() -> tuple[str, str]:
            own = journal.content(row.seq) or ""
            if self._to_current:
                return own, journal.content(file.head.seq) or ""
            base = journal.version("collab", file.path, base_version)
            return (journal.content(base.seq) or "") if base else "", own

        old, new = await asyncio.to_thread(read)
        lines = await self.watchroom.worker_process.diff(old, new)
        name = f"v{row.version}" if row.version is not None else "✗"
        other = f"v{file.head.version}" if self._to_current else f"v{base_version}"
        title = (
            f"{safe(file.path)}  {name} → {other}"
            if self._to_current
            else f"{safe(file.path)}  {other} → {name}"
        )
        if not lines:
            empty: list[Line] = [
                [],
                [Span(" " + words("files.no_changes", version=other.removeprefix("v")), "dim")],
            ]
            self.query_one("#diff", TextView).show_lines((row.seq, other), empty, title=title)
            return
        self.query_one("#diff", TextView).show_lines((row.seq, other), diff_lines(lines), title=title)

    @work(exclusive=True, group="rollback")
    async def action_rollback(self) -> None:
        """Bring the chosen version back, after asking."""
        app, words = self.watchroom, self.watchroom.words
        row, file = self.query_one("#versions", VersionList).item, self._shown_file
        if row is None or file is None:
            return
        if not app.feed.is_live or app.workspace is None:
            app.tell(words("files.not_ready" if app.feed.is_live else "files.in_the_past"), "warning")
        elif row.version is None:
            app.tell(words("files.refused"), "warning")
        elif row.version == file.head.version:
            app.tell(words("files.current", version=row.version), "warning")
        else:
            question = words(
                "files.rollback_question",
                path=safe(file.path),
                version=row.version,
                next=(file.head.version or 0) + 1,
            )
            if await self.app.push_screen_wait(QuestionScreen(words("files.rollback_title"), question)):
                tools = app.workspace.tools_for_human(app.person)
                result = await asyncio.to_thread(
                    tools.dispatch_tool_call,
                    "collab_rollback",
                    {"filepath": file.path, "to_version": row.version},
                )
                if result["success"]:
                    done = words(
                        "files.rolled_back",
                        path=safe(file.path),
                        version=row.version,
                        new=result["new_version"],
                    )
                    app.tell(done, "information")
                else:
                    app.tell(f"{result['message']} {result['suggestion']}", "error")


def diff_lines(lines: list[DiffLine]) -> list[Line]:
    """A diff with the line numbers of both sides."""
    digits = len(str(max((max(line.old, line.new) for line in lines), default=1)))
    drawn: list[Line] = []
    for line in lines:
        if line.kind == "hunk":
            drawn.append([Span(f" {safe(line.text)}", "header-line")])
            continue
        old = f"{line.old or '':>{digits}}"
        new = f"{line.new or '':>{digits}}"
        sign, style = {"same": (" ", ""), "added": ("+", "added"), "removed": ("−", "removed")}[line.kind]
        under = f"{style}-line" if style else ""
        drawn.append([Span(f"{old} {new} ", under or "number"), Span(f"{sign} {safe(line.text)}", style)])
    return drawn
