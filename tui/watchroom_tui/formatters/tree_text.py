"""A file of a working tree as rows, with the author of each line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.drawing import MEASURED, Cell, DrawnLine, LinedDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.formatters.tree_changes import author_style
from watchroom_tui.presentation.sanitize import sanitize

if TYPE_CHECKING:
    from watchroom.features.trees.reads import FileLine

_MAX_NAME: Final = 14


class TreeText(LinedDrawing):
    """The ``lines`` with their numbers, and a plus sign before lines that HEAD lacks.

    - ``foot``: function that returns the foot for a line.
    - ``has_authors``: whether to show the author of each line.
    """

    def __init__(
        self, lines: Sequence[FileLine], foot: Callable[[FileLine], str], *, has_authors: bool
    ) -> None:
        self._lines = lines
        self._foot = foot
        self._has_authors = has_authors
        self._digits = len(str(max(len(lines), 1)))
        names = {each.author.name for each in lines if each.author.grade != "git"}
        self._name = min(_MAX_NAME, max(map(len, names), default=0)) if has_authors else 0

    def __len__(self) -> int:
        return len(self._lines)

    def gutter(self, index: int) -> int:
        return self._digits + 4 + (self._name + 2 if self._name else 0)

    def longest(self) -> int:
        texts = (each.text for each in self._lines[:MEASURED])
        return max((len(text) if text.isascii() else 2 * len(text) for text in texts), default=0)

    def foot(self, index: int) -> str:
        return self._foot(self._lines[index])

    def cell_texts(self, index: int) -> Sequence[str]:
        return [sanitize(self._text(index))]

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        line = self._lines[index]
        is_new = not line.is_committed
        style = author_style(line.author)
        gutter = [
            Span(f" {index + 1:>{self._digits}} ", "number"),
            Span("+ " if is_new else "  ", "added" if is_new else ""),
        ]
        more = [Span(" " * (self._digits + 4))]
        if self._name:
            is_first = is_top or index == 0 or self._lines[index - 1].author != line.author
            has_author = line.author.grade != "git"
            name = sanitize(line.author.name) if is_first and has_author else ""
            bar = Span("│", style if has_author else "number")
            gutter += [bar, Span(fit(name, self._name) + " ", style)]
            more += [bar, Span(" " * (self._name + 1))]
        text = self._text(index)
        shown = Span(sanitize(text if len(text) <= 4 * reach else text[: 4 * reach]))
        return [Cell(gutter, [shown], "", more)]

    def line_at(self, index: int) -> DrawnLine:
        """Return the line in a row."""
        return DrawnLine(index, False, self._text(index))

    def _text(self, index: int) -> str:
        return self._lines[index].text.removesuffix("\r")
