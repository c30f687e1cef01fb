"""The list of handoffs with their progress."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, Literal

from watchroom.features.handoffs.rows import Delivery

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

MARKS: Final = {
    "waiting": Span("✉", "warning"),
    "read": Span("◐", "accent"),
    "acknowledged": Span("✓", "ok"),
}


class DeliveryList(ItemList[Delivery]):
    """Handoffs, newest first. ``open_only``: whether acknowledged handoffs are left out."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=11, most=20),
        Column(least=1),
        Column(least=11, most=20),
        Column(least=12, cut="middle"),
        Column(least=8),
        Column(least=4, align="right"),
        Column(least=0, grows=True),
    )

    open_only = False

    def title_text(self, title: str) -> str:
        return f"{title} · {texts_of(self)('handoffs.open_only')}" if self.open_only else title

    def item_key(self, item: Delivery) -> Hashable:
        return item.row.path

    def cells(self, item: Delivery) -> Sequence[Line]:
        mark = MARKS[state_of(item)]
        return (
            [Span(" "), mark],
            [Span(sanitize(item.sender), agent_class(item.sender))],
            [Span("→", "dim")],
            [Span(sanitize(item.receiver), agent_class(item.receiver))],
            [Span(sanitize(item.filename))],
            [Span(texts_of(self)(f"handoffs.state.{state_of(item)}"), mark.style)],
            [Span(self.age_of(item.row), "dim")],
            [Span(sanitize(item.row.message), "dim")],
        )

    def copy_text(self, item: Delivery) -> str:
        return item.filename


def state_of(delivery: Delivery) -> Literal["waiting", "read", "acknowledged"]:
    """Return the progress of a handoff. It is ``waiting`` until its receiver reads it."""
    if delivery.acknowledged is not None:
        return "acknowledged"
    return "read" if delivery.read else "waiting"
