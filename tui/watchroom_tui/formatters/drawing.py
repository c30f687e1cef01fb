"""Rows that are drawn when they become visible. Pure."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.presentation.sanitize import TAB

MEASURED: Final = 2000
"""Maximum number of rows to measure for horizontal scrolling."""


class Cell(NamedTuple):
    """A line of text on the screen.

    - ``gutter``: the fixed part before the text.
    - ``under``: the style of the background.
    - ``more``: the gutter of wrapped lines, default blank.
    """

    gutter: Line
    text: Line
    under: str = ""
    more: Line = ()


class DrawnLine(NamedTuple):
    """A line of a text in a row.

    - ``at``: the index of the line in the text.
    - ``is_old``: whether the text is the old text of a difference.
    - ``text``: the line without its end.
    """

    at: int
    is_old: bool
    text: str


class Drawing(ABC):
    """Base of drawings: rows that are drawn when they are visible. A row has ``columns`` cells, or one cell
    across all columns.

    An anchor is a number that identifies a row while the text is unchanged. The default is the index of the
    row.
    """

    columns: int = 1

    wraps: bool = True
    """Whether long rows are wrapped. Otherwise rows scroll sideways, or fit into the width."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        """Return the cells of a row. Texts can end after ``reach`` cells. ``is_top``: whether the row is the
        first visible row."""

    @abstractmethod
    def cell_texts(self, index: int) -> Sequence[str]:
        """Return the complete texts of the cells of a row, without the cost of drawing them."""

    @abstractmethod
    def gutter(self, index: int) -> int:
        """Return the width of the gutter of the cells of a row."""

    @abstractmethod
    def longest(self) -> int:
        """Return the width of the widest measured text."""

    def foot(self, index: int) -> str:
        """Return the text of the pane's foot for a cursor on this row."""
        return ""

    def copy_text(self, index: int) -> str:
        """Return the text of the row to copy: safe to paste into a shell, with its tabs."""
        return "\t".join(self.cell_texts(index)).replace(TAB, "\t")

    def copy_all(self, max_length: int) -> tuple[str, int]:
        """Return all text to copy, and its number of lines. Longer texts are cut after at least
        ``max_length`` characters."""
        lines: list[str] = []
        length = 0
        for row in range(len(self)):
            lines.append(self.copy_text(row))
            length += len(lines[-1]) + 1
            if length > max_length:
                break
        return "\n".join(lines), len(self)

    def find(self, words: str) -> Iterator[Sequence[int]]:
        """Yield the anchors of all matches of ``words`` in order, ignoring case. Each step takes a few
        milliseconds."""
        pattern = re.compile(re.escape(words), re.IGNORECASE)
        for row in range(len(self)):
            yield [row] * sum(len(pattern.findall(text)) for text in self.cell_texts(row))

    def anchor(self, row: int) -> int:
        """Return the anchor of a row."""
        return row

    def row_at(self, anchor: int) -> int:
        """Return the row at ``anchor``."""
        return anchor

    def moved(self, before: Drawing, anchor: int) -> int | None:
        """Return the new anchor of the content at ``anchor`` in ``before``, the last drawing of the same
        subject. None if the content is gone."""
        return anchor


class LinedDrawing(Drawing):
    """A drawing whose rows are lines of texts."""

    @abstractmethod
    def line_at(self, index: int) -> DrawnLine | None:
        """Return the line in a row, None if the row contains no line of a text."""


class EstimatedDrawing(Drawing):
    """A drawing for one width. The number of rows is an estimate until they are drawn, and the rows below
    move when the estimate changes."""

    wraps = False

    revision: int = 0
    """Number that changes when the look of drawn rows changes."""

    is_flashing: bool = False
    """Whether recently changed rows are emphasized."""

    @abstractmethod
    def fit(self, width: int) -> None:
        """Set the width of the drawing in cells."""

    @abstractmethod
    def follow(self, before: Drawing) -> None:
        """Take over the state of ``before``, the last drawing of the same subject."""

    @abstractmethod
    def end_flash(self) -> None:
        """Stop emphasizing changed rows."""

    @abstractmethod
    def settle(self, row: int, above: int, below: int) -> int:
        """Draw ``row``, and ``above`` rows above and ``below`` rows below it, so that their number is exact.
        Return the new index of ``row``."""

    @abstractmethod
    async def work_ahead(self, row: int, height: int) -> int | None:
        """Do a few milliseconds of work for the rows that may be shown next, after the ``height`` rows from
        ``row`` on. Return the new index of ``row``, None if there was nothing to do."""
