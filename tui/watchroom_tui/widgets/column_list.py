"""A list in columns that share its width by what their texts need."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, TypeVar

from watchroom_tui.formatters.columns import Column, share_width
from watchroom_tui.formatters.styled_text import Line, align_cells, width_of
from watchroom_tui.widgets.line_list import LineList

T = TypeVar("T")


class ColumnList(LineList[T]):
    """A column becomes as wide as the texts in it that were seen so far, and never narrower while the same is
    shown: what comes later moves nothing back."""

    COLUMNS: ClassVar[Sequence[Column]]

    _needs: Sequence[int] = ()
    _shares: Sequence[int] = ()
    _shared = -1

    @abstractmethod
    def cells(self, item: T) -> Sequence[Line]:
        """What stands in each column of the item's line; safe already."""

    def line(self, item: T, width: int) -> Line:
        cells = self.cells(item)
        if not self._needs:
            self._measure_visible()
        if self._grow([cells]):
            # What was drawn before stands in narrower columns.
            self._kept.clear()
            self.refresh()
        if self._shared != width:
            self._shared, self._shares = width, share_width(self.COLUMNS, self._needs, width)
        return align_cells(self.COLUMNS, cells, self._shares)

    def item_text(self, item: T) -> str:
        return " ".join("".join(span.text for span in cell) for cell in self.cells(item))

    def show(self, items: Sequence[T]) -> None:
        if len(items) < len(self._all):
            # What is gone needs no width any more.
            self._forget_widths()
        super().show(items)

    def show_of(self, subject: Hashable, items: Sequence[T]) -> None:
        if subject != self._subject:
            self._forget_widths()
        super().show_of(subject, items)

    def set_filter(self, text: str) -> None:
        self._forget_widths()
        super().set_filter(text)

    def _forget_widths(self) -> None:
        """Before something else is shown: what was seen before it says nothing of its widths."""
        self._needs = ()
        self._shared = -1
        self._kept.clear()

    def _measure_visible(self) -> None:
        """Before the first line is drawn, so that the next ones do not move it."""
        top = self.scroll_offset.y
        self._grow([self.cells(each) for each in self._shown[top : top + self.content_area.height]])

    def _grow(self, lines: Sequence[Sequence[Line]]) -> bool:
        """Make the columns wide enough for these cells; False if they are."""
        needs = self._needs or [0] * len(self.COLUMNS)
        for cells in lines:
            needs = [max(need, width_of(cell)) for need, cell in zip(needs, cells, strict=True)]
        if needs == self._needs:
            return False
        self._needs, self._shared = needs, -1
        return True
