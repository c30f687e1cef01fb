"""The summary of a board with progress bars; enter jumps to an item."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rich.cells import set_cell_size

from watchroom_tui.board_summary import SummaryItem, summary_line
from watchroom_tui.localization import texts_of
from watchroom_tui.styled_text import Line, Span, cut, width_of
from watchroom_tui.widgets.line_list import LineList


class BoardPanel(LineList[SummaryItem]):
    _is_waiting = False

    def wait(self) -> None:
        """Another board is looked through: say nothing of the one before."""
        self._is_waiting = True
        self.show([])
        self.refresh()

    def show_message(self, items: Sequence[SummaryItem]) -> None:
        """Show what a board says."""
        self._is_waiting = False
        self.show(items)
        self.refresh()

    def empty_lines(self, width: int) -> list[str]:
        if self._is_waiting:
            return [texts_of(self)("boards.reading")]
        return super().empty_lines(width)

    def item_key(self, item: SummaryItem) -> Hashable:
        return (item.kind, item.text, item.who, item.is_heading)

    def render_key(self, item: SummaryItem) -> Hashable:
        return item

    def line(self, item: SummaryItem, width: int) -> Line:
        line = summary_line(item, width, texts_of(self))
        if width_of(line) <= width:
            return line
        shown = set_cell_size("".join(span.text for span in line), width - 1)
        return [*cut(line, 0, len(shown.rstrip())), Span("…", "dim")]

    def item_text(self, item: SummaryItem) -> str:
        return f"{item.kind} {item.text} {item.who}"
