"""A text as rows, below drawn lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from watchroom_tui.formatters.drawing import MEASURED, Cell, Drawing
from watchroom_tui.formatters.styled_text import Line, Span, cut, mark, width_of
from watchroom_tui.presentation.sanitize import sanitize_lines


class TextDrawing(Drawing):
    """The ``text`` with line numbers, below ``head``. Long lines of ``head`` are wrapped and indented to
    their second span.

    - ``changed``: the lines to mark, counted from 0.
    - ``marks``: the pattern of texts to emphasize.
    """

    def __init__(
        self,
        text: str | None,
        *,
        head: Sequence[Line] = (),
        changed: frozenset[int] = frozenset(),
        marks: re.Pattern[str] | None = None,
    ) -> None:
        self._texts = [] if text is None else sanitize_lines(text)
        self._head = head
        self._changed = changed
        self._marks = marks
        self._digits = len(str(len(self._texts)))

    def __len__(self) -> int:
        return len(self._head) + len(self._texts)

    def gutter(self, index: int) -> int:
        if index >= len(self._head):
            return self._digits + 2
        line = self._head[index]
        return width_of(line[:1]) if len(line) > 1 else 0

    def longest(self) -> int:
        heads = (width_of(line) for line in self._head[:MEASURED])
        return max((*heads, *(width_of([Span(text)]) for text in self._texts[:MEASURED])), default=0)

    def cell_texts(self, index: int) -> Sequence[str]:
        if index >= len(self._head):
            return [self._texts[index - len(self._head)]]
        line = self._head[index]
        return ["".join(span.text for span in (line[1:] if len(line) > 1 else line))]

    def copy_text(self, index: int) -> str:
        if index < len(self._head):
            return "".join(span.text for span in self._head[index])
        return super().copy_text(index)

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        number = index - len(self._head)
        if number < 0:
            line = self._head[index]
            under = line[0].style if line and line[0].style.endswith("-line") else ""
            return [Cell(line[:1], line[1:], under) if len(line) > 1 else Cell((), line, under)]
        sign = Span("▌", "accent") if number in self._changed else Span(" ")
        text: Line = cut([Span(self._texts[number])], 0, 4 * reach)
        if self._marks is not None:
            text = mark(text, self._marks, "match-here")
        more = [Span(" " * (self._digits + 1)), sign]
        return [Cell([Span(f"{number + 1:>{self._digits}} ", "number"), sign], text, "", more)]
