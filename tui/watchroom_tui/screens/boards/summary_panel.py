"""The summary of a board with progress bars. Enter jumps to an item."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from watchroom_tui.formatters.board_summary import SummaryItem, summary_lines
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.widgets.item_list import ItemList

LEAST: Final = 20
"""Minimum width in columns for which summaries are wrapped."""


class SummaryRow(NamedTuple):
    """A row of the summary. A long item has several rows. ``number``: the index of this row, from 0."""

    item: SummaryItem
    number: int
    line: Line


class BoardPanel(ItemList[SummaryRow]):
    WRAPS = "never"

    _is_waiting = False
    _items: Sequence[SummaryItem] = ()
    _wrapped_at = 0

    def wait(self) -> None:
        """Clear the previous board's summary, and show that another board is being read."""
        self._is_waiting = True
        self._items = ()
        self.show([])
        self.refresh()

    def show_message(self, items: Sequence[SummaryItem]) -> None:
        """Show the items of a board's summary."""
        self._is_waiting = False
        self._items = items
        self._wrap()
        self.refresh()

    def _wrap(self) -> None:
        texts, self._wrapped_at = texts_of(self), self.content_area.width
        # The panel has no width until it is shown.
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
