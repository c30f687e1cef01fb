"""The versions of a board: compare two versions, or restore an earlier version."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.overview.model import Model
from watchroom.features.overview.reads import UnreadableVersionError, read_history
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.restore import ask_to_restore
from watchroom_tui.formatters.diff_drawing import DiffDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.comparison import compare_versions
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_tui.widgets.version_timeline import VersionTimeline, version_name


class BoardVersionsScreen(BaseScreen):
    """The versions of a board, on top of the boards screen."""

    CSS_PATH = "boards.tcss"
    SCREEN_NAME: ClassVar = "board_versions"
    BINDINGS = bindings("board_versions")

    def __init__(self, head: Row) -> None:
        super().__init__()
        self._head = head
        self._listed: Row | None = None
        self.timeline = VersionTimeline(
            title="pane.versions", empty="empty.versions", id="versions", classes="pane"
        )
        self.view = TextPane(title="pane.diff", empty="empty.diff", id="diff", classes="pane")

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield self.timeline
            yield self.view

    def show_model(self, model: Model) -> None:
        self._head = next((each.head for each in model.boards if each.name == self._head.path), self._head)
        if self._head != self._listed:
            self._listed = self._head
            self.load_versions(self._head)

    @work(exclusive=True, group="versions")
    async def load_versions(self, head: Row) -> None:
        journal, as_of = self.dashboard.journal, self.dashboard.model.seq
        self.timeline.show(await asyncio.to_thread(read_history, journal, head, as_of=as_of))
        self._compare()

    @on(ItemList.Highlighted, "#versions")
    def choose(self) -> None:
        self._compare()

    @on(ItemList.Opened, "#versions")
    def open_version(self) -> None:
        self.front(self.view)

    def action_mark(self) -> None:
        """Mark the version under the cursor, or remove its mark."""
        self.timeline.flip_mark()
        self._compare()

    def action_restore(self) -> None:
        """Show the changes that a restore of the chosen version makes, and ask to restore it."""
        if self.timeline.item is not None:
            ask_to_restore(self.dashboard, self.timeline.item, self._head)

    def _compare(self) -> None:
        row = self.timeline.item
        if row is not None:
            self.load_comparison(row, self.timeline.compared)

    @work(exclusive=True, group="diff")
    async def load_comparison(self, row: Row, other: Row | None) -> None:
        app = self.dashboard
        try:
            pair, diff = await compare_versions(app, row, other)
        except UnreadableVersionError as error:
            name = version_name(error.row)
            self._say(name, app.texts("files.unreadable", version=name))
            return
        before = version_name(pair.old) if pair.old is not None else "v0"
        name = f"{before} → {version_name(pair.new)}"
        if not diff.changed:
            self._say(name, app.texts("files.no_changes", version=before))
            return
        drawing = await asyncio.to_thread(DiffDrawing, diff, side_by_side=False)
        self.view.show_drawing(pair, drawing, title=f"{sanitize(row.path)}  {name}")

    def _say(self, name: str, text: str) -> None:
        title = f"{sanitize(self._head.path)}  {name}"
        self.view.show_notice(name, [[], [Span(f" {text}", "dim")]], title=title)
