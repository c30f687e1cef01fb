"""Show a drawing line by line, with fixed gutters: differences, blame, documents."""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from watchroom_tui.formatters.columns import fit, wrap
from watchroom_tui.formatters.diff_drawing import Cell, Drawing
from watchroom_tui.formatters.styled_text import Line, Span, cut, mark, width_of
from watchroom_tui.formatters.text_drawing import TextDrawing
from watchroom_tui.keys.actions import Scope
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.textual_compat import mark_dirty
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.scrollable import MAX_COPIED, ScrollableWidget

MAX_WRAPPED: Final = 4_000
"""Max rows of a wrapped drawing, with at most a hundred times as many characters. Wrapping more would delay
keys. Larger drawings scroll sideways."""

SLICE: Final = 0.006
"""Max seconds of a search before keys are handled."""


class LineView(ScrollableWidget):
    """Shows a `Drawing`: texts, differences, blame, documents, transcripts. It can have a cursor on a row.

    Long lines are wrapped. The scroll position and the cursor are kept when the same subject is drawn again.
    """

    SCOPES: ClassVar[tuple[Scope, ...]] = ("view",)
    IS_SEARCHABLE = True

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._title = title
        self._empty = empty
        self._subject: object = None
        self._drawing: Drawing | None = None
        self._cursor: int | None = None
        self._measured_at = 0
        self._heights: dict[tuple[int, tuple[str, ...]], int] = {}
        """The heights of the rows last drawn, because most of them are in the next drawing."""
        self._starts: list[int] | None = None
        """The first line of each row, and the end. None if nothing is wrapped."""
        self._pattern: re.Pattern[str] | None = None
        self._matching: list[int] = []
        self._matching_row: int | None = None
        self._searched_from = 0

    # -- content

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
        """Show ``text`` below ``head``, with line numbers.

        - ``subject``: what the text is about. A new subject starts at the top.
        - ``changed``: the lines to mark, counted from 0.
        - ``marks``: the pattern of texts to emphasize.
        """
        drawing = TextDrawing(text, head=head, changed=changed, marks=marks)
        self.show_drawing(subject, drawing, title=title)

    def show_notice(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        """Show drawn lines. ``subject``: see `show_text`."""
        self.show_drawing(subject, TextDrawing(None, head=lines), title=title)

    def show_drawing(
        self, subject: object, drawing: Drawing, *, title: str, with_cursor: bool = False
    ) -> None:
        """Show ``drawing``. ``subject``: see `show_text`."""
        is_another = subject != self._subject
        before = 0 if is_another or self._cursor is None else self._cursor
        self._subject, self._drawing = subject, drawing
        self._cursor = min(before, len(drawing) - 1) if with_cursor and len(drawing) else None
        self.virtual_size = self._measure(drawing)
        self._entitle(title)
        if is_another:
            self._matching_row = None
            self.scroll_to(x=0, y=0, animate=False, immediate=True)
        self._show_foot()
        self.renew_search()
        self.refresh()

    def clear(self) -> None:
        """Show nothing."""
        self._drawing, self._cursor, self._subject, self._starts = None, None, None, None
        self.virtual_size = Size(0, 0)
        self._entitle(texts_of(self)(self._title))
        self._show_foot()
        self.refresh()

    @property
    def tab_text(self) -> str:
        """The name on this pane's tab, if only one pane is visible."""
        return texts_of(self)(self._title)

    def _entitle(self, title: str) -> None:
        self.border_title = content(title)

    def on_mount(self) -> None:
        self._entitle(texts_of(self)(self._title))

    def foot(self) -> str:
        width = self.size.width - 6
        if self._drawing is None or not len(self._drawing) or width <= 0:
            return ""
        return fit(self._drawing.foot(self._cursor or 0), width).rstrip()

    # -- search and copy

    def search_for(self, words: str) -> None:
        if words == self._sought:
            return
        if not self._sought:
            top = self._row_at(self.scroll_offset.y)[0]
            self._searched_from = top if self._cursor is None else self._cursor
        self._matching_row = None
        super().search_for(words)

    async def search(self, words: str) -> int:
        self._pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        self._matching = []
        self.refresh()
        drawing, pattern = self._drawing, self._pattern
        if drawing is None or pattern is None:
            self._matching_row = None
            return 0
        count, until = 0, time.perf_counter() + SLICE
        for row in range(len(drawing)):
            found = sum(len(pattern.findall(text)) for text in drawing.cell_texts(row))
            if found:
                self._matching.append(row)
                count += found
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE
        return count

    def go_to_match(self, step: int) -> bool:
        rows = self._matching
        if not rows:
            return False
        at = self._matching_row
        if at is None:
            at = self._searched_from - (step > 0)
        found = bisect_right(rows, at) if step > 0 else bisect_left(rows, at) - 1
        row = self._matching_row = rows[found % len(rows)]
        if self._cursor is not None:
            self._move_cursor(row)
        elif not 0 <= self._line_of(row) - self.scroll_offset.y < self.content_area.height:
            y = self._line_of(row) - self.content_area.height // 3
            self.scroll_to(y=y, animate=False, immediate=True)
        self.refresh()
        return True

    def _marked(self, cell: Cell, row: int) -> Cell:
        if self._pattern is None:
            return cell
        style = "match-here" if row == self._matching_row else "match"
        return cell._replace(text=mark(cell.text, self._pattern, style))

    def copied_text(self) -> tuple[str, int]:
        drawing = self._drawing
        if drawing is None:
            return "", 0
        if self._cursor is not None:
            return drawing.copy_text(self._cursor), 1
        lines: list[str] = []
        length = 0
        for row in range(len(drawing)):
            lines.append(drawing.copy_text(row))
            length += len(lines[-1]) + 1
            if length > MAX_COPIED:
                break
        return "\n".join(lines), len(drawing)

    # -- layout

    @staticmethod
    def _space(drawing: Drawing, row: int, width: int) -> int:
        """Return the cells for text in each column of a row of ``width`` cells, without the gutters."""
        columns = drawing.columns
        return max(1, (width - columns + 1) // columns - drawing.gutter(row))

    def _measure(self, drawing: Drawing) -> Size:
        """Return the size to scroll. Before the first layout, nothing counts as wrapped."""
        width = self._width_for(drawing)
        known = self._heights if self._measured_at == width else {}
        self._measured_at = width
        self._starts = self._wrapped_starts(drawing, width, known) if width else None
        if self._starts is not None:
            return Size(0, self._starts[-1])
        hidden = max(0, drawing.longest() - self._space(drawing, len(drawing) - 1, width)) if width else 0
        return Size(width + hidden if hidden else 0, len(drawing))

    def _width_for(self, drawing: Drawing) -> int:
        """Return the cells of a line, beside a present or expected scrollbar."""
        width, height = self.container_size
        has_bar = self.show_vertical_scrollbar or len(drawing) > height
        return max(0, width - self.styles.scrollbar_size_vertical) if has_bar else width

    def _wrapped_starts(
        self, drawing: Drawing, width: int, known: Mapping[tuple[int, tuple[str, ...]], int]
    ) -> list[int] | None:
        self._heights = {}
        if len(drawing) > MAX_WRAPPED:
            return None
        starts, characters = [0], 0
        for index in range(len(drawing)):
            space, texts = self._space(drawing, index, width), tuple(drawing.cell_texts(index))
            characters += sum(map(len, texts))
            if characters > 100 * MAX_WRAPPED:
                return None
            height = known.get((space, texts)) or max(len(wrap(text, space)) for text in texts)
            self._heights[space, texts] = height
            starts.append(starts[-1] + height)
        return starts

    def _row_at(self, line: int) -> tuple[int, int]:
        """Return the row at a line, and the line within the row."""
        if self._starts is None:
            return line, 0
        row = bisect_right(self._starts, line) - 1
        return row, line - self._starts[row]

    def _line_of(self, row: int) -> int:
        return row if self._starts is None else self._starts[row]

    def _scroll_update(self, virtual_size: Size) -> None:
        # Textual calls this in each layout before it paints, so the final size is measured before the first
        # paint.
        self._fit_width()
        super()._scroll_update(self.virtual_size)
        if self._fit_width():
            super()._scroll_update(self.virtual_size)

    def _fit_width(self) -> bool:
        """Measure the lines for the current width. Return False if that was done."""
        drawing = self._drawing
        if drawing is None or self._measured_at == self._width_for(drawing):
            return False
        # Without another layout, because nothing around this widget depends on its size.
        self.set_reactive(LineView.virtual_size, self._measure(drawing))
        mark_dirty(self)
        self._show_foot()
        return True

    def on_resize(self) -> None:
        self._show_foot()
        if self._cursor is not None:
            self._show_cursor()

    def watch_show_vertical_scrollbar(self) -> None:
        # The scrollbar takes one cell, and sends no resize event.
        self.call_after_refresh(self.on_resize)

    # -- drawing

    def render_line(self, y: int) -> Strip:
        drawing = self._drawing
        width, (left, top) = self.content_area.width, self.scroll_offset
        if drawing is None or not len(drawing):
            lines = wrap(texts_of(self)(self._empty), max(10, width - 2))
            return self.strip([Span(" " + lines[y - 1], "dim")] if 0 < y <= len(lines) else (), width)
        index, part = self._row_at(y + top)
        if index >= len(drawing):
            return self.strip((), width)
        under = self.style_under(index)
        reach = left + width if self._starts is None else 100 * MAX_WRAPPED
        space = self._space(drawing, index, width)
        cells = [self._marked(cell, index) for cell in drawing.row(index, reach, is_top=y == 0)]
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
                strips.append(self._cell(self._part_of(cell, part, space), mine, 0, under or cell.under))
            free -= mine
        return Strip.join(strips)

    def style_under(self, index: int) -> str:
        """The style of the whole row at ``index``; empty for the styles of its cells."""
        if index != self._cursor:
            return ""
        return "cursor" if self.has_focus else "cursor-idle"

    def _part_of(self, cell: Cell, part: int, space: int) -> Cell:
        """Return one line of a wrapped cell."""
        pieces = wrap("".join(span.text for span in cell.text), space)
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
        """Scroll the minimum that makes the cursor's row visible."""
        row, top, height = self._cursor or 0, self.scroll_offset.y, max(1, self.content_area.height)
        first, last = self._line_of(row), self._line_of(row + 1) - 1
        if first < top:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif last >= top + height:
            self.scroll_to(y=min(first, last - height + 1), animate=False, immediate=True)

    def on_focus(self) -> None:
        self._refresh_cursor()

    def on_blur(self) -> None:
        self._refresh_cursor()

    def _refresh_cursor(self) -> None:
        if self._cursor is not None:
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or self._cursor is None:
            return
        row = self._row_at(offset.y + self.scroll_offset.y)[0]
        is_opened = row == self._cursor
        self._move_cursor(row)
        if is_opened:
            self.open_row()

    def open_row(self) -> None:
        """Open the row under the cursor, on a click as on enter."""
