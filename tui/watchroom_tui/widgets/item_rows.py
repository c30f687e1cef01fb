"""Which rows of a list its items take. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Final, Generic, Protocol, TypeVar

T = TypeVar("T")
Of = TypeVar("Of", contravariant=True)

MOST_KEPT: Final = 2000
"""So many heights are kept for the next time."""


class ItemRows:
    """The first items take as many rows as ``heights`` says, all others one."""

    def __init__(self, count: int, heights: Sequence[int] = ()) -> None:
        """``count``: how many items there are, those with a height included."""
        self._heights = tuple(heights)
        self._starts = list(accumulate(heights, initial=0))
        self.total = self._starts[-1] + count - len(heights)

    def has_same_heights(self, other: ItemRows) -> bool:
        """Whether each item that takes several rows takes as many in ``other``."""
        return self._heights == other._heights

    def item_at(self, row: int) -> tuple[int, int]:
        """The index of the item that ``row`` belongs to, and which of its rows that is, from 0 on. Below the
        last item, indices go on, a row each."""
        several = self._starts[-1]
        if row >= several:
            return row - several + len(self._heights), 0
        index = bisect_right(self._starts, row) - 1
        return index, row - self._starts[index]

    def first_row_of(self, index: int) -> int:
        """The first row of the item at ``index``."""
        known = len(self._heights)
        return self._starts[index] if index <= known else self._starts[-1] + index - known

    def height_of(self, index: int) -> int:
        """How many rows the item at ``index`` takes."""
        return self._heights[index] if index < len(self._heights) else 1

    def rows_of(self, index: int) -> range:
        """The rows of the item at ``index``."""
        first = self.first_row_of(index)
        return range(first, first + self.height_of(index))


def fit_heights(heights: Sequence[int], count: int, space: int) -> list[int]:
    """How many rows each item gets where all stand in ``space`` rows: what is left beside one row each goes
    to the first that want more.

    ``heights``: how many each of the ``count`` items wants. Empty if there is nothing to share.
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
        """Return what is drawn of the item in ``width`` cells."""

    def prepare_lines(self, items: Sequence[Of]) -> None:
        """Look at all of ``items`` before the first is measured."""

    def wanted_height(self, item: Of, width: int) -> int:
        """In how many rows of ``width`` cells the item is whole."""


class ItemHeights(Generic[T]):
    """In how many rows items are whole; each is measured once, as long as it looks the same."""

    def __init__(self) -> None:
        self._width = -1
        self._known: dict[Hashable, int] = {}

    def forget(self) -> None:
        """Measure all anew: how the width is shared has changed."""
        self._known.clear()

    def measure(self, items: Sequence[T], width: int, drawing: ItemDrawing[T]) -> list[int]:
        """The heights of ``items`` in ``width`` cells, in rows."""
        if self._width != width or len(self._known) > MOST_KEPT:
            self._width = width
            self.forget()
        keyed = [(drawing.render_key(item, width), item) for item in items]
        # This may make that all is forgotten.
        drawing.prepare_lines([item for key, item in keyed if key not in self._known])
        heights = []
        for key, item in keyed:
            height = self._known.get(key)
            if height is None:
                # And this, where the clock has moved on meanwhile and made a column wider.
                height = drawing.wanted_height(item, width)
                self._known[key] = height
            heights.append(height)
        return heights
