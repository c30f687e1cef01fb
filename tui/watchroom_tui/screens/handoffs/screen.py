"""The handoffs screen: the list of handoffs, and the content of the selected handoff."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.handoffs.rows import Delivery
from watchroom.features.overview.model import Model, Need
from watchroom.kernel.reads import find_content
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.handoffs.delivery_list import DeliveryList
from watchroom_tui.services.external_editor import edit_version
from watchroom_tui.widgets.containers import Container
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane


class HandoffsScreen(BaseScreen):
    CSS_PATH = "handoffs.tcss"
    SCREEN_NAME: ClassVar = "handoffs"
    BINDINGS = bindings("handoffs")

    def __init__(self) -> None:
        super().__init__()
        self._shown: Delivery | None = None
        self._listed: tuple[tuple[Delivery, ...], bool] | None = None

        self.deliveries = DeliveryList(
            title="pane.deliveries", empty="empty.deliveries", id="deliveries", classes="pane"
        )
        self.content_view = TextPane(
            title="pane.content", empty="empty.deliveries", id="content", classes="pane"
        )

    def compose_panes(self) -> ComposeResult:
        with Container(id="body", classes="group"):
            yield self.deliveries
            yield self.content_view

    def show_model(self, model: Model) -> None:
        open_only = self.deliveries.open_only
        if (model.deliveries, open_only) != self._listed:
            self._listed = (model.deliveries, open_only)
            shown = [each for each in model.deliveries if not (open_only and each.acknowledged)]
            self.deliveries.show(shown)
        self._show_content()

    def go_to_row(self, row: Row) -> None:
        self.deliveries.move_to(row.path)
        self.front(self.deliveries)

    @property
    def current_need(self) -> Need | None:
        delivery = self.deliveries.item
        path = delivery.row.path if delivery else ""
        return self.find_need(("outside", "handoff"), f"handoff {path}", path)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "open_file":
            return self.deliveries.item is not None
        return action != "flip_acknowledged" or bool(self.dashboard.model.deliveries)

    async def action_open_file(self) -> None:
        """Open the file that was handed over in the person's editor."""
        if self.deliveries.item is not None:
            await edit_version(self.dashboard, self.deliveries.item.row)

    def action_flip_acknowledged(self) -> None:
        self.deliveries.open_only = not self.deliveries.open_only
        self.show_model(self.dashboard.model)

    @on(ItemList.Highlighted, "#deliveries")
    def choose(self) -> None:
        self._show_content()

    @on(ItemList.Opened, "#deliveries")
    def open_delivery(self) -> None:
        self.front(self.content_view)

    def _show_content(self) -> None:
        delivery = self.deliveries.item
        if delivery != self._shown:
            self._shown = delivery
            if delivery is None:
                self.content_view.clear()
            else:
                self.load(delivery)

    @work(exclusive=True)
    async def load(self, delivery: Delivery) -> None:
        content = await asyncio.to_thread(find_content, self.dashboard.journal, delivery.row)
        self.content_view.show_text(
            delivery.row.path,
            content or "",
            title=f"{sanitize(delivery.filename)} v{delivery.row.version}",
            head=[*_said(delivery), []],
        )


def _said(delivery: Delivery) -> list[Line]:
    """Return lines with the sender's message and the receiver's acknowledgement, if it exists."""
    row, answer = delivery.row, delivery.acknowledged
    lines: list[Line] = [
        [
            Span(f" {sanitize(delivery.sender)} ", agent_class(delivery.sender)),
            Span(f"{local_clock(row.time)}  ", "dim"),
            Span(sanitize(row.message), "strong"),
        ]
    ]
    if answer is not None:
        lines.append(
            [
                Span(f" {sanitize(delivery.receiver)} ", agent_class(delivery.receiver)),
                Span(f"{local_clock(answer.time)}  ", "dim"),
                Span("✓ ", "ok"),
                Span(sanitize(answer.message)),
            ]
        )
    return lines
