"""A list in columns that share its width by what their texts need."""

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

MOST_WRAPPED: Final = 50
"""Only so many items, the first ones, take several rows: how high they are is worked out for all of them."""
MOST_CHARACTERS: Final = 2000
"""So many characters of a text are looked at; six rows of a wide terminal hold fewer."""
MOST_ROWS: Final = 6
"""An item takes no more rows than these; what is longer is read where it is opened."""


class ColumnList(LineList[T]):
    """A column becomes as wide as the texts in it that were seen so far, and never narrower while the same is
    shown: what comes later moves nothing back."""

    COLUMNS: ClassVar[Sequence[Column]]

    WRAPS: ClassVar[Wrapping] = "to-fit"
    """Whether an item takes several rows where its text needs them: as far as all items stay in sight, or
    always."""

    _needs: Sequence[int] = ()
    _shares: Sequence[int] = ()
    _shared = -1
    _wanted_rows = 0

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._heights = ItemHeights[T]()

    @abstractmethod
    def cells(self, item: T) -> Sequence[Line]:
        """What stands in each column of the item's line; safe already."""

    def line(self, item: T, width: int) -> Line:
        return align_cells(self.COLUMNS, *self._measured(item, width))

    def render_key(self, item: T, width: int) -> Hashable:
        # How cells share the width is no part of the key: `_widen` drops all drawn lines when that changes.
        return tuple(map(tuple, self._bounded_cells(item)))

    def lines(self, item: T, width: int, most: int) -> Sequence[Line]:
        return wrap_cells(self.COLUMNS, *self._measured(item, width), most)

    def _measured(self, item: T, width: int) -> tuple[Sequence[Line], Sequence[int]]:
        """The cells of the item, and how wide each of them may be."""
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
        # Before it is laid out, nobody knows what fits; where nothing is free, nothing can be given.
        wanted = () if is_full or not area.width else self._wanted_heights(self._shown, area.width)
        if self._wanted_rows != (rows := sum(wanted)):
            self._wanted_rows = rows
            if self.styles.is_auto_height:
                self.refresh(layout=True)
        if self.WRAPS == "to-fit":
            return ItemRows(count, fit_heights(wanted, count, area.height))
        # No item is higher than the list: its end could not be read.
        return ItemRows(count, [min(height, max(1, area.height)) for height in wanted])

    def count_rows(self, items: Sequence[T], width: int) -> int:
        return ItemRows(len(items), self._wanted_heights(items, width)).total

    def _wanted_heights(self, items: Sequence[T], width: int) -> Sequence[int]:
        """In how many rows each of the first of ``items`` is whole; empty if each has one row."""
        if self.WRAPS == "to-fit" and len(items) > MOST_WRAPPED:
            return ()
        return self._heights.measure(items[:MOST_WRAPPED], width, self)

    def wanted_height(self, item: T, width: int) -> int:
        """In how many rows the item is whole."""
        return len(self.lines(item, width, MOST_ROWS))

    def prepare_lines(self, items: Sequence[T]) -> None:
        """Make the columns wide enough for ``items``."""
        self._widen([self._bounded_cells(item) for item in items])

    def _bounded_cells(self, item: T) -> Sequence[Line]:
        """The cells, of whose texts as much as can be seen: a request names all the calls that it is about,
        and sixty thousand wide characters take a fifth of a second to wrap."""
        cells = self.cells(item)
        if any(len(span.text) > MOST_CHARACTERS for cell in cells for span in cell):
            return [cut(cell, 0, MOST_CHARACTERS) for cell in cells]
        return cells

    def _widen(self, lines: Sequence[Sequence[Line]]) -> None:
        if self._grow(lines):
            # What was drawn before stands in narrower columns.
            self._kept.clear()
            self._heights.forget()
            self.refresh()

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
        self._heights.forget()

    def _measure_visible(self) -> None:
        """Before the first line is drawn, so that the next ones do not move it."""
        top = self.scroll_offset.y
        self._grow([self._bounded_cells(each) for each in self._shown[top : top + self.content_area.height]])

    def _grow(self, lines: Sequence[Sequence[Line]]) -> bool:
        """Make the columns wide enough for these cells; False if they are."""
        needs = self._needs or [0] * len(self.COLUMNS)
        for cells in lines:
            needs = [max(need, width_of(cell)) for need, cell in zip(needs, cells, strict=True)]
        if needs == self._needs:
            return False
        self._needs, self._shared = needs, -1
        return True
