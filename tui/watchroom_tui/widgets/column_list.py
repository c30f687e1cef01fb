"""A list in columns that share its width by the lengths of their texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, Literal, TypeAlias, TypeVar

from watchroom_tui.formatters.columns import Column, share_width
from watchroom_tui.formatters.styled_text import Line, align_cells, cut, width_of, wrap_cells
from watchroom_tui.widgets.item_rows import ItemHeights, ItemRows, fit_heights
from watchroom_tui.widgets.line_list import LineList

T = TypeVar("T")

Wrapping: TypeAlias = Literal["to-fit", "always"]

MAX_WRAPPED: Final = 50
"""Max items that can take several rows, because the heights of all of them are computed."""
MAX_CHARACTERS: Final = 2000
"""Max characters of a text to draw. Six rows of a wide terminal hold fewer."""
MAX_ROWS: Final = 6
"""Max rows of an item. Longer texts are read in the item's own view."""


class ColumnList(LineList[T]):
    """A list in columns. A column is as wide as the longest text in it so far, and does not become narrower
    while the same subject is shown, so that new items do not move the others."""

    COLUMNS: ClassVar[Sequence[Column]]

    WRAPS: ClassVar[Wrapping] = "to-fit"
    """When items take several rows: as long as all items stay visible, or always."""

    _needs: Sequence[int] = ()
    _shares: Sequence[int] = ()
    _shared = -1
    _wanted_rows = 0

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._heights = ItemHeights[T]()

    @abstractmethod
    def cells(self, item: T) -> Sequence[Line]:
        """Return the sanitized text of each column of the item."""

    def line(self, item: T, width: int) -> Line:
        return align_cells(self.COLUMNS, *self._measured(item, width))

    def render_key(self, item: T, width: int) -> Hashable:
        # The shares of the width are not in the key, because `_widen` drops all drawn lines when they change.
        return tuple(map(tuple, self._bounded_cells(item)))

    def lines(self, item: T, width: int, most: int) -> Sequence[Line]:
        return wrap_cells(self.COLUMNS, *self._measured(item, width), most)

    def _measured(self, item: T, width: int) -> tuple[Sequence[Line], Sequence[int]]:
        """Return the cells of the item and their widths."""
        if not self._needs:
            self._measure_visible()
        cells = self._bounded_cells(item)
        self._widen([cells])
        if self._shared != width:
            self._shared, self._shares = width, share_width(self.COLUMNS, self._needs, width)
        return cells, self._shares

    def arrange_rows(self) -> ItemRows:
        area, count = self.content_area, len(self._shown)
        is_full = self.WRAPS == "to-fit" and count >= area.height and not self.styles.is_auto_height
        # Before the first layout the height is unknown. A full list has no rows to give.
        wanted = () if is_full or not area.width else self._wanted_heights(self._shown, area.width)
        if self._wanted_rows != (rows := sum(wanted)):
            self._wanted_rows = rows
            if self.styles.is_auto_height:
                self.refresh(layout=True)
        if self.WRAPS == "to-fit":
            return ItemRows(count, fit_heights(wanted, count, area.height))
        # No item is higher than the list, or its end could not be read.
        return ItemRows(count, [min(height, max(1, area.height)) for height in wanted])

    def count_rows(self, items: Sequence[T], width: int) -> int:
        return ItemRows(len(items), self._wanted_heights(items, width)).total

    def _wanted_heights(self, items: Sequence[T], width: int) -> Sequence[int]:
        """Return the rows that each of the first ``items`` needs. Empty if each has one row."""
        if self.WRAPS == "to-fit" and len(items) > MAX_WRAPPED:
            return ()
        return self._heights.measure(items[:MAX_WRAPPED], width, self)

    def wanted_height(self, item: T, width: int) -> int:
        """Return the number of rows that the item needs."""
        return len(self.lines(item, width, MAX_ROWS))

    def prepare_lines(self, items: Sequence[T]) -> None:
        """Widen the columns for ``items``."""
        self._widen([self._bounded_cells(item) for item in items])

    def _bounded_cells(self, item: T) -> Sequence[Line]:
        """Return the cells, cut to `MAX_CHARACTERS`. A request lists all its calls, and 60,000 wide
        characters take 0.2 s to wrap."""
        cells = self.cells(item)
        if any(len(span.text) > MAX_CHARACTERS for cell in cells for span in cell):
            return [cut(cell, 0, MAX_CHARACTERS) for cell in cells]
        return cells

    def _widen(self, lines: Sequence[Sequence[Line]]) -> None:
        if self._grow(lines):
            # Lines drawn before have narrower columns.
            self._kept.clear()
            self._heights.forget()
            self.refresh()

    def item_text(self, item: T) -> str:
        return " ".join("".join(span.text for span in cell) for cell in self.cells(item))

    def show(self, items: Sequence[T]) -> None:
        if len(items) < len(self._all):
            # Removed items need no width.
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
        """Forget the widths, because the next subject has its own."""
        self._needs = ()
        self._shared = -1
        self._kept.clear()
        self._heights.forget()

    def _measure_visible(self) -> None:
        """Measure the visible items before the first is drawn, so that later lines do not move it."""
        top = self.scroll_offset.y
        self._grow([self._bounded_cells(each) for each in self._shown[top : top + self.content_area.height]])

    def _grow(self, lines: Sequence[Sequence[Line]]) -> bool:
        """Widen the columns for these cells. Return False if they are wide enough."""
        needs = self._needs or [0] * len(self.COLUMNS)
        for cells in lines:
            needs = [max(need, width_of(cell)) for need, cell in zip(needs, cells, strict=True)]
        if needs == self._needs:
            return False
        self._needs, self._shared = needs, -1
        return True
