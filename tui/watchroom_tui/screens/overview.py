"""The overview screen: agents, needs and activity."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from watchroom.projections import Model, Need
from watchroom.projections.model import urgent_needs

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.widgets.lists import AgentList, NeedList, RowList

AGE_SECONDS = 10.0
"""How often the relative times are brought up to date while nothing happens."""


class OverviewScreen(BaseScreen):
    SCREEN_NAME: ClassVar = "overview"

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="top", classes="group"):
            yield AgentList(title="pane.agents", empty="empty.agents", id="agents", classes="pane")
            yield NeedList(title="pane.needs", empty="empty.needs", id="needs", classes="pane")
        yield RowList(title="pane.activity", empty="empty.activity", id="activity", classes="pane")

    def prepare(self) -> None:
        self.set_interval(AGE_SECONDS, lambda: self.show(self.watchroom.model))

    def show_model(self, model: Model) -> None:
        self.query_one("#agents", AgentList).show_team(model)
        self.query_one("#needs", NeedList).show(urgent_needs(model, self.watchroom.now()))
        self.query_one("#activity", RowList).show(model.recent)

    @property
    def current_need(self) -> Need | None:
        return self.query_one("#needs", NeedList).item

    @on(LineList.Opened, "#agents")
    async def open_agent(self) -> None:
        view = self.query_one("#agents", AgentList).item
        if view:
            await self.watchroom.navigator.go_to_agent(view.agent.id)

    @on(LineList.Opened, "#needs")
    async def open_need(self) -> None:
        need = self.query_one("#needs", NeedList).item
        if need:
            await self.watchroom.navigator.go_to_need(need)

    @on(LineList.Opened, "#activity")
    def open_row(self) -> None:
        from watchroom_tui.dialogs.row import RowDialog

        row = self.query_one("#activity", RowList).item
        if row:
            self.app.push_screen(RowDialog(row))
