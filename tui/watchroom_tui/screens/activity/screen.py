"""All rows of the journal, loaded page by page as they come into view."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.errors import JournalError
from watchroom.features.overview.model import Model, Need
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.reads import read_page
from watchroom.model import Outcome, Row, is_step

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.revert import ask_to_revert_row
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.keys.actions import bindings
from watchroom_tui.screens.activity.paged_rows import PagedRowList
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.widgets.item_list import ItemList


class ActivityScreen(BaseScreen):
    CSS_PATH = "activity.tcss"
    SCREEN_NAME: ClassVar = "activity"
    BINDINGS = bindings("activity")

    def __init__(self) -> None:
        super().__init__()
        self._outcome: Outcome | None = None
        self._with_steps = False

    def compose_panes(self) -> ComposeResult:
        yield PagedRowList(title="pane.activity", empty=self.empty_key("activity"), id="rows", classes="pane")

    def show_model(self, model: Model) -> None:
        self.query_one("#rows", PagedRowList).show_newest(model.newest if self._with_steps else model.recent)

    @property
    def is_arriving(self) -> bool:
        return self.query_one("#rows", PagedRowList).is_seeking

    def go_to_row(self, row: Row) -> None:
        if not self._only.admits(row):
            self._outcome, self._with_steps = None, self._with_steps or is_step(row)
            self._show_only()
        self.query_one("#rows", PagedRowList).move_to(row.seq)

    @property
    def current_need(self) -> Need | None:
        row = self.query_one("#rows", PagedRowList).item
        seq = row.seq if row is not None else 0
        return next((need for need in self.dashboard.needs if need.row.seq == seq), None)

    def action_next_outcome(self) -> None:
        """Show only rows of the next outcome: all, conflict, denied, failed, ok, all …"""
        order: list[Outcome | None] = [None, "conflict", "denied", "failed", "ok"]
        self._outcome = order[(order.index(self._outcome) + 1) % len(order)]
        self._show_only()

    def action_flip_steps(self) -> None:
        """Show or hide the steps of sessions and the output of commands."""
        self._with_steps = not self._with_steps
        self._show_only()

    @property
    def _only(self) -> RowFilter:
        return RowFilter(outcome=self._outcome, steps=self._with_steps)

    def _show_only(self) -> None:
        self.query_one("#rows", PagedRowList).show_only(self._only, self._label())

    def _label(self) -> str:
        texts = self.dashboard.texts
        parts = [texts(f"outcome.{self._outcome}")] if self._outcome else []
        return " · ".join([*parts, texts("action.steps.label")] if self._with_steps else parts)

    @on(PagedRowList.PageRequested)
    def load_more(self, event: PagedRowList.PageRequested) -> None:
        self.load(event)

    @work(exclusive=True, group="pages")
    async def load(self, request: PagedRowList.PageRequested) -> None:
        app, only = self.dashboard, request.only
        newest = request.before if app.is_live else min(request.before, app.model.seq + 1)
        rows = self.query_one("#rows", PagedRowList)
        try:
            page = await asyncio.to_thread(read_page, app.journal, newest, only=only, limit=PagedRowList.PAGE)
        except JournalError:
            rows.forget(request)
            raise
        rows.add_older(request, page.rows)

    def action_revert_work(self) -> None:
        """Ask to revert what the row's agent did from that row on, or to undo the row if it is a revert."""
        row = self.query_one("#rows", PagedRowList).item
        if row is not None:
            ask_to_revert_row(self.dashboard, row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "commit_work":
            return bool(self.dashboard.model.trees) and bool(self._agent)
        if action == "revert_work":
            return self.query_one("#rows", PagedRowList).item is not None
        return action != "show_terminal" or bool(self._agent)

    @property
    def _agent(self) -> str:
        """The agent of the row under the cursor, empty if the row has no agent as its actor."""
        row = self.query_one("#rows", PagedRowList).item
        return row.actor if row is not None and row.kind == "agent" else ""

    def action_commit_work(self) -> None:
        AgentActions(self.dashboard).commit_work(self._agent)

    def action_show_terminal(self) -> None:
        AgentActions(self.dashboard).show_terminal(self._agent)

    @on(ItemList.Opened, "#rows")
    def open_row(self) -> None:
        row = self.query_one("#rows", PagedRowList).item
        if row:
            self.app.push_screen(RowDialog(row))
