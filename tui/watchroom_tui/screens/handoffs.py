"""The handoffs screen: sender, receiver, status, message and content of each."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from watchroom.model import Row
from watchroom.projections import Delivery, Model, Need

from watchroom_tui.actions import bindings
from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.columns import fit
from watchroom_tui.local_time import local_clock
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.widgets.lists import DeliveryList
from watchroom_tui.widgets.text_view import TextView

MATRIX_AGENTS = 12
"""The matrix shows the agents that hand over most: more would not be read."""


class HandoffsScreen(BaseScreen):
    SCREEN_NAME: ClassVar = "handoffs"
    BINDINGS = bindings("handoffs")

    def __init__(self) -> None:
        super().__init__()
        self._open_only = False
        self._shown: Delivery | None = None
        self._drawn: tuple[tuple[Delivery, ...], int] | None = None

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            with Vertical(id="left", classes="group"):
                yield DeliveryList(
                    title="pane.deliveries", empty="empty.deliveries", id="deliveries", classes="pane"
                )
                yield TextView(title="pane.matrix", empty="empty.matrix", id="matrix", classes="pane")
            yield TextView(title="pane.content", empty="empty.deliveries", id="content", classes="pane")

    def show_model(self, model: Model) -> None:
        matrix = self.query_one("#matrix", TextView)
        width = matrix.scrollable_content_region.width
        if self._drawn is None or model.deliveries is not self._drawn[0] or width != self._drawn[1]:
            self._drawn = (model.deliveries, width)
            shown = [each for each in model.deliveries if not (self._open_only and each.acknowledged)]
            self.query_one("#deliveries", DeliveryList).show(shown)
            lines = matrix_lines(model.deliveries, width)
            matrix.show_lines("matrix", lines, title=self.watchroom.texts("pane.matrix"))
        self._show_content()

    def go_to(self, row: Row) -> None:
        deliveries = self.query_one("#deliveries", DeliveryList)
        deliveries.move_to(row.path)
        self.front(deliveries)

    @property
    def current_need(self) -> Need | None:
        delivery = self.query_one("#deliveries", DeliveryList).item
        path = delivery.row.path if delivery else ""
        return self.find_need(("outside", "handoff"), f"handoff {path}", path)

    def action_flip_acknowledged(self) -> None:
        self._open_only = not self._open_only
        self._drawn = None
        self.show_model(self.watchroom.model)

    def on_resize(self) -> None:
        # The panes have their new size only then.
        self.call_after_refresh(lambda: self.show_model(self.watchroom.model))

    @on(LineList.Highlighted, "#deliveries")
    def choose(self) -> None:
        self._show_content()

    @on(LineList.Opened, "#deliveries")
    def open_delivery(self) -> None:
        self.front(self.query_one("#content", TextView))

    def _show_content(self) -> None:
        delivery = self.query_one("#deliveries", DeliveryList).item
        if delivery != self._shown:
            self._shown = delivery
            if delivery is None:
                self.query_one("#content", TextView).clear()
            else:
                self.load(delivery)

    @work(exclusive=True)
    async def load(self, delivery: Delivery) -> None:
        content = await asyncio.to_thread(self.watchroom.journal.content, delivery.row.seq)
        row = delivery.row
        head: list[Line] = [
            [
                Span(f" {sanitize(delivery.sender)}", agent_class(delivery.sender)),
                Span(" → ", "dim"),
                Span(sanitize(delivery.receiver), agent_class(delivery.receiver)),
                Span(f"   {local_clock(row.time)}   v{row.version}", "dim"),
            ],
            [Span(" "), Span(f"“{sanitize(row.message)}”", "strong")],
        ]
        if delivery.acknowledged:
            answer = sanitize(delivery.acknowledged.message)
            head.append(
                [Span(" ✓ ", "ok"), Span(f"{local_clock(delivery.acknowledged.time)}  {answer}", "ok")]
            )
        view = self.query_one("#content", TextView)
        view.show_text(row.path, content or "", title=sanitize(delivery.filename), head=[*head, []])


def matrix_lines(deliveries: tuple[Delivery, ...], width: int) -> list[Line]:
    """Who handed how many files to whom, in ``width`` cells if it can be; the unread are counted apart."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    busy: dict[str, int] = {}
    for each in deliveries:
        total, unread = counts.get((each.sender, each.receiver), (0, 0))
        counts[each.sender, each.receiver] = (total + 1, unread + (not each.read))
        for agent in (each.sender, each.receiver):
            busy[agent] = busy.get(agent, 0) + 1
    agents = sorted(sorted(busy, key=lambda agent: -busy[agent])[:MATRIX_AGENTS])
    if not agents:
        return []
    cell_width = max(6, min(12, (width - 13) // len(agents) - 1))
    header: list[Span] = [Span(fit("", 13))]
    header += [Span(fit(sanitize(agent), cell_width, "right") + " ", agent_class(agent)) for agent in agents]
    lines: list[Line] = [header]
    for sender in agents:
        line = [Span(" " + fit(sanitize(sender), 12), agent_class(sender))]
        for receiver in agents:
            total, unread = counts.get((sender, receiver), (0, 0))
            cell = "·" if not total else f"{total}" + (f" ✉{unread}" if unread else "")
            style = "warning" if unread else "" if total else "dim"
            line.append(Span(fit(cell, cell_width, "right") + " ", style))
        lines.append(line)
    return lines
