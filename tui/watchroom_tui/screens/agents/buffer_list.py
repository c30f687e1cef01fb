"""The list of open buffers with their state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final

from watchroom.features.buffers.view import BufferState, BufferView

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

MARKS: Final[Mapping[BufferState, Span]] = {
    "synced": Span("✓", "ok"),
    "unwritten": Span("✎", "accent"),
    "behind": Span("↓", "warning"),
    "apart": Span("⚔", "error"),
}
"""The mark of each difference between a buffer and its source."""
CHOICE_MARK: Final = Span("◐", "warning")
"""The mark of a buffer whose agent must choose between places."""


class BufferList(ItemList[BufferView]):
    """Open buffers, by agent and name."""

    SHOWS_AGENT = True
    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=6, most=20),
        Column(least=8, most=24),
        Column(least=6),
        Column(least=12, cut="middle", grows=True),
        Column(least=4, align="right"),
    )

    def item_key(self, item: BufferView) -> Hashable:
        return item.path

    def cells(self, item: BufferView) -> Sequence[Line]:
        mark = CHOICE_MARK if item.waits_for_choice else MARKS[item.state]
        state = "buffers.choose" if item.waits_for_choice else f"buffers.state.{item.state}"
        return (
            [Span(" "), mark],
            [Span(sanitize(item.agent), agent_class(item.agent))] if self.SHOWS_AGENT else (),
            [Span(sanitize(item.name))],
            [Span(texts_of(self)(state), mark.style)],
            [Span(sanitize(source_of(item)), "dim")],
            [Span(self.age_of(item.row), "dim")],
        )

    def item_text(self, item: BufferView) -> str:
        return f"{item.agent} {item.name} {source_of(item)}"

    def copy_text(self, item: BufferView) -> str:
        return item.path


class OwnBufferList(BufferList):
    """Open buffers of one agent, by name."""

    SHOWS_AGENT = False


def source_of(view: BufferView) -> str:
    """Return the path of the buffer's source. Not sanitized. Boards and private files get a mark, because a
    shared file can have the same path."""
    marks = {"board": f"{labels.BOARD_MARK} ", "private": "~/"}
    return f"{marks.get(view.record.zone, '')}{view.source_path}"
