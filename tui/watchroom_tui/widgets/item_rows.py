"""The rows of a list that each item takes. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Final, Generic, Protocol, TypeVar

T = TypeVar("T")
Of = TypeVar("Of", contravariant=True)

MAX_KEPT: Final = 2000
"""Max cached heights."""


class ItemRows:
    """Maps rows to items. The first items take ``heights`` rows, all others one row."""

    def __init__(self, count: int, heights: Sequence[int] = ()) -> None:
        """``count``: the number of items, including those with a height."""
        self._heights = tuple(heights)
        self._starts = list(accumulate(heights, initial=0))
        self.total = self._starts[-1] + count - len(heights)

    def has_same_heights(self, other: ItemRows) -> bool:
        """Return whether the items that take several rows have the same heights in ``other``."""
        return self._heights == other._heights

    def item_at(self, row: int) -> tuple[int, int]:
        """Return the index of the item at ``row``, and the row within the item (from 0). After the last item,
        each row counts as one index."""
        several = self._starts[-1]
        if row >= several:
            return row - several + len(self._heights), 0
        index = bisect_right(self._starts, row) - 1
        return index, row - self._starts[index]

    def first_row_of(self, index: int) -> int:
        """Return the first row of the item at ``index``."""
        known = len(self._heights)
        return self._starts[index] if index <= known else self._starts[-1] + index - known

    def height_of(self, index: int) -> int:
        """Return the number of rows of the item at ``index``."""
        return self._heights[index] if index < len(self._heights) else 1

    def rows_of(self, index: int) -> range:
        """Return the rows of the item at ``index``."""
        first = self.first_row_of(index)
        return range(first, first + self.height_of(index))


def fit_heights(heights: Sequence[int], count: int, space: int) -> list[int]:
    """Return the rows for each item in ``space`` rows. After one row each, the first items that need more get
    the rest.

    ``heights``: the rows that each of the ``count`` items needs. Empty if there is nothing to distribute.
    """
    spare = space - count
    if spare <= 0:
        return []
    fitted = []
    for wanted in heights:
        given = min(wanted, 1 + spare)
        spare -= given - 1
        fitted.append(given)
    return fitted


class ItemDrawing(Protocol[Of]):
    """How a list draws its items."""

    def render_key(self, item: Of, width: int) -> Hashable:
        """Return the appearance of the item in ``width`` cells."""

    def prepare_lines(self, items: Sequence[Of]) -> None:
        """Prepare to measure ``items``."""

    def wanted_height(self, item: Of, width: int) -> int:
        """Return the number of rows that the item needs in ``width`` cells."""


class ItemHeights(Generic[T]):
    """The rows that items need. Each item is measured once per appearance."""

    def __init__(self) -> None:
        self._width = -1
        self._known: dict[Hashable, int] = {}

    def forget(self) -> None:
        """Measure all items again, because the columns have other widths."""
        self._known.clear()

    def measure(self, items: Sequence[T], width: int, drawing: ItemDrawing[T]) -> list[int]:
        """Return the heights of ``items`` in ``width`` cells, in rows."""
        if self._width != width or len(self._known) > MAX_KEPT:
            self._width = width
            self.forget()
        keyed = [(drawing.render_key(item, width), item) for item in items]
        # This may call `forget`.
        drawing.prepare_lines([item for key, item in keyed if key not in self._known])
        heights = []
        for key, item in keyed:
            height = self._known.get(key)
            if height is None:
                # This may call `forget`, if a time became longer and widened its column.
                height = drawing.wanted_height(item, width)
                self._known[key] = height
            heights.append(height)
        return heights
