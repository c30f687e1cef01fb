"""The widths of the columns of a list, and the rows of each item. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from watchroom_tui.formatters.columns import Column, share_width
from watchroom_tui.formatters.styled_text import Line, width_of


class ColumnWidths:
    """The widths of columns. Each column is as wide as its widest text so far, so that new items do not move
    the other items."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._widest: Sequence[int] = ()
        self._shares: tuple[int, Sequence[int]] | None = None

    @property
    def is_known(self) -> bool:
        """Whether a text was measured."""
        return bool(self._widest)

    def forget(self) -> None:
        """Forget the measured widths, because other texts are shown."""
        self._widest, self._shares = (), None

    def widen(self, items: Iterable[Sequence[Line]]) -> bool:
        """Widen the columns for the cells of ``items``. Return False if no column changed."""
        widest = self._widest or [0] * len(self._columns)
        for cells in items:
            widest = [max(width, width_of(cell)) for width, cell in zip(widest, cells, strict=True)]
        if widest == self._widest:
            return False
        self._widest, self._shares = widest, None
        return True

    def share(self, width: int) -> Sequence[int]:
        """Return the width of each column in a list of ``width`` cells."""
        if self._shares is None or self._shares[0] != width:
            self._shares = (width, share_width(self._columns, self._widest, width))
        return self._shares[1]


class ItemRows:
    """A map from rows to items. The first items have the heights ``heights``, all other items have one
    row."""

    def __init__(self, count: int, heights: Sequence[int] = ()) -> None:
        """Create a map for ``count`` items, including the items with a height."""
        self._heights = tuple(heights)
        self._starts = list(accumulate(heights, initial=0))
        self.total = self._starts[-1] + count - len(heights)

    def has_same_heights(self, other: ItemRows) -> bool:
        """Return whether ``other`` has the same heights for the items with several rows."""
        return self._heights == other._heights

    def item_at(self, row: int) -> tuple[int, int]:
        """Return the index of the item at ``row``, and the row within the item (from 0). Each row after the
        last item counts as one more index."""
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
    """Return the number of rows for each item in ``space`` rows. Each item gets one row; the first items that
    need more rows get the rest.

    ``heights``: the number of rows that each of the ``count`` items needs. Return an empty list if there are
    no rows to distribute.
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
