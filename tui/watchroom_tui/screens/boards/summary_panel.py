"""The summary of a board with progress bars; enter jumps to an item."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from watchroom_tui.formatters.board_summary import SummaryItem, summary_lines
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.widgets.item_list import ItemList

LEAST: Final = 20
"""Summaries are laid out for at least so many columns."""


class SummaryRow(NamedTuple):
    """A row of the summary: where an item is too long for one, each of its rows."""

    item: SummaryItem
    number: int
    line: Line


class BoardPanel(ItemList[SummaryRow]):
    WRAPS = "never"

    _is_waiting = False
    _items: Sequence[SummaryItem] = ()
    _wrapped_at = 0

    def wait(self) -> None:
        """Another board is looked through: say nothing of the one before."""
        self._is_waiting = True
        self._items = ()
        self.show([])
        self.refresh()

    def show_message(self, items: Sequence[SummaryItem]) -> None:
        """Show what a board says."""
        self._is_waiting = False
        self._items = items
        self._wrap()
        self.refresh()

    def _wrap(self) -> None:
        texts, self._wrapped_at = texts_of(self), self.content_area.width
        # It has no width as long as it is not shown.
        width = max(LEAST, self._wrapped_at)
        self.show(
            [
                SummaryRow(item, number, line)
                for item in self._items
                for number, line in enumerate(summary_lines(item, width, texts))
            ]
        )

    def on_resize(self) -> None:
        if self._wrapped_at != self.content_area.width:
            self._wrap()

    def empty_lines(self, width: int) -> list[str]:
        if self._is_waiting:
            return [texts_of(self)("boards.reading")]
        return super().empty_lines(width)

    def item_key(self, item: SummaryRow) -> Hashable:
        entry = item.item
        return (entry.kind, entry.text, entry.who, entry.is_heading, item.number)

    def cells(self, item: SummaryRow) -> Sequence[Line]:
        return ([*item.line, Span("")],)

    def item_text(self, item: SummaryRow) -> str:
        return f"{item.item.kind} {item.item.text} {item.item.who}"
