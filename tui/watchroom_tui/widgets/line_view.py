"""Show a drawing by the line, with fixed gutters: diffs, blame, documents."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import Final

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from watchroom_tui.columns import fit, wrap
from watchroom_tui.diff_drawing import Cell, Drawing
from watchroom_tui.styled_text import Line, Span, cut, width_of
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_view import TextView

MOST_WRAPPED: Final = 4_000
"""Drawings of more rows, or of more than a hundred times as many characters, are not wrapped at the edge of
the pane: that would take longer than a key may. They scroll sideways."""


class LineView(TextView):
    """A text view that can show a `Drawing` too, with a cursor on one of its rows where that is wanted.

    Long lines are wrapped. The scroll position and the cursor stay when the same subject is drawn anew.
    """

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._drawing: Drawing | None = None
        self._cursor: int | None = None
        self._heights: dict[tuple[str, ...], int] = {}
        """How many lines the rows took that were last drawn: most come again with the next drawing."""
        self._starts: list[int] | None = None
        """On which line each row begins, and the end; None where nothing is wrapped."""

    def show_drawing(
        self, subject: Hashable, drawing: Drawing, *, title: str, with_cursor: bool = False
    ) -> None:
        """Show ``drawing``. ``subject`` is what it is about: another one starts at the top."""
        before = self._cursor if self._cursor is not None and subject == self._subject else 0
        self._source, self._lines, self._drawing = None, (), drawing
        self._cursor = min(before, len(drawing) - 1) if with_cursor and len(drawing) else None
        self._present(subject, title)
        self._show_foot()

    def show_text(
        self,
        subject: object,
        text: str,
        *,
        title: str,
        head: Sequence[Line] = (),
        changed: frozenset[int] = frozenset(),
        marks: re.Pattern[str] | None = None,
    ) -> None:
        self._drawing, self._cursor = None, None
        super().show_text(subject, text, title=title, head=head, changed=changed, marks=marks)
        self._show_foot()

    def show_notice(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        self._drawing, self._cursor = None, None
        super().show_notice(subject, lines, title=title)
        self._show_foot()

    def clear(self) -> None:
        self._drawing, self._cursor = None, None
        super().clear()
        self._show_foot()

    def _show_foot(self) -> None:
        width = self.size.width - 6
        text = (
            self._drawing.foot(self._cursor or 0) if self._drawing is not None and len(self._drawing) else ""
        )
        self.border_subtitle = content(fit(text, width).rstrip()) if text and width > 0 else None

    def _text_width(self) -> int:
        """How many cells of text there are in each column, beside the gutters."""
        if self._drawing is None:
            return 0
        columns = self._drawing.columns
        return max(1, (self.content_area.width - columns + 1) // columns - self._drawing.gutter())

    def _measure(self) -> None:
        drawing = self._drawing
        if drawing is None:
            super()._measure()
            return
        self._starts = self._wrapped_starts(drawing)
        if self._starts is not None:
            self.virtual_size = Size(0, self._starts[-1])
            return
        hidden = max(0, drawing.longest() - self._text_width())
        self.virtual_size = Size(self.content_area.width + hidden if hidden else 0, len(drawing))

    def _wrapped_starts(self, drawing: Drawing) -> list[int] | None:
        if len(drawing) > MOST_WRAPPED:
            return None
        known = self._heights if self._wrapped_at == self._text_width() else {}
        self._wrapped_at, self._heights = self._text_width(), {}
        starts, characters = [0], 0
        for index in range(len(drawing)):
            texts = tuple(drawing.cell_texts(index))
            characters += sum(map(len, texts))
            if characters > 100 * MOST_WRAPPED:
                return None
            height = known.get(texts) or max(len(wrap(text, self._wrapped_at)) for text in texts)
            self._heights[texts] = height
            starts.append(starts[-1] + height)
        return starts

    def _row_at(self, line: int) -> tuple[int, int]:
        """Which row stands on a line, and which of its lines that is."""
        if self._starts is None:
            return line, 0
        row = bisect_right(self._starts, line) - 1
        return row, line - self._starts[row]

    def _line_of(self, row: int) -> int:
        return row if self._starts is None else self._starts[row]

    def on_resize(self) -> None:
        if self._drawing is None:
            super().on_resize()
            return
        self._measure()
        self._show_foot()
        if self._cursor is not None:
            self._show_cursor()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        drawing = self._drawing
        if drawing is None:
            return super().render_line(y)
        width, (left, top) = self.content_area.width, self.scroll_offset
        index, part = self._row_at(y + top)
        if index >= len(drawing):
            return self.strip((), width)
        under = ""
        if index == self._cursor:
            under = "cursor" if self.has_focus else "cursor-idle"
        reach = left + width if self._starts is None else 100 * MOST_WRAPPED
        cells = drawing.row(index, reach, is_top=y == 0)
        strips: list[Strip] = []
        free = width
        for number, cell in enumerate(cells):
            if number:
                strips.append(self.strip([Span("│", "number")], 1))
                free -= 1
            mine = free // (len(cells) - number)
            if self._starts is None:
                strips.append(self._cell(cell, mine, left, under or cell.under))
            else:
                strips.append(self._cell(self._part_of(cell, part), mine, 0, under or cell.under))
            free -= mine
        return Strip.join(strips)

    def _part_of(self, cell: Cell, part: int) -> Cell:
        """One line of a cell whose text is wrapped."""
        pieces = wrap("".join(span.text for span in cell.text), self._wrapped_at)
        gutter = cell.gutter if part == 0 else cell.more or [Span(" " * width_of(cell.gutter))]
        if part >= len(pieces):
            return cell._replace(gutter=gutter, text=())
        start = sum(len(piece) for piece in pieces[:part])
        return cell._replace(gutter=gutter, text=cut(cell.text, start, start + len(pieces[part])))

    def _cell(self, cell: Cell, width: int, left: int, under: str) -> Strip:
        gutter = width_of(cell.gutter)
        space = max(0, width - gutter)
        text = width_of(cell.text)
        strips = [self.strip(cell.gutter, gutter, under)]
        whole = self.strip(cell.text, max(text, left + space), under)
        if text > left + space and space:
            strips += [whole.crop(left, left + space - 1), self.strip([Span("…", "dim")], 1, under)]
        else:
            strips.append(whole.crop(left, left + space))
        return Strip.join(strips).adjust_cell_length(width)

    def action_scroll_by(self, lines: int) -> None:
        if self._cursor is None:
            super().action_scroll_by(lines)
        else:
            self._move_cursor(self._cursor + lines)

    def action_scroll_to_end(self, end: int) -> None:
        if self._cursor is None or self._drawing is None:
            super().action_scroll_to_end(end)
        else:
            self._move_cursor(len(self._drawing) if end else 0)

    def _move_cursor(self, index: int) -> None:
        last = len(self._drawing) - 1 if self._drawing is not None else 0
        before, self._cursor = self._cursor, max(0, min(index, last))
        self._show_cursor()
        if self._cursor != before:
            self._show_foot()
            self.refresh()

    def _show_cursor(self) -> None:
        """Scroll as little as brings the cursor's row into view."""
        row, top, height = self._cursor or 0, self.scroll_offset.y, max(1, self.content_area.height)
        first, last = self._line_of(row), self._line_of(row + 1) - 1
        if first < top:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif last >= top + height:
            self.scroll_to(y=min(first, last - height + 1), animate=False, immediate=True)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and self._cursor is not None:
            self._move_cursor(self._row_at(offset.y + self.scroll_offset.y)[0])
