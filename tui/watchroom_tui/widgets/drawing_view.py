"""Shows a drawing of a text: comparisons and blame, drawn by the line, with gutters that stay in place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from watchroom_tui.columns import fit
from watchroom_tui.comparing import Cell, Drawing
from watchroom_tui.spans import Line, Span, width_of
from watchroom_tui.widgets.drawn import content
from watchroom_tui.widgets.text_view import TextView


class DrawingView(TextView):
    """A text view that can show a `Drawing` too, with a cursor on one of its rows where that is wanted.

    The scroll position and the cursor stay when the same subject is drawn anew.
    """

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._drawing: Drawing | None = None
        self._cursor: int | None = None

    def show_drawing(
        self, subject: Hashable, drawing: Drawing, *, title: str, with_cursor: bool = False
    ) -> None:
        """Show ``drawing``. ``subject`` is what it is about: another one starts at the top."""
        before = self._cursor if self._cursor is not None and subject == self._subject else 0
        self._source, self._lines, self._drawing = None, (), drawing
        self._cursor = min(before, len(drawing) - 1) if with_cursor and len(drawing) else None
        self._present(subject, title)
        self._show_foot()

    def show_words(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        self._drawing, self._cursor = None, None
        super().show_words(subject, lines, title=title)
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

    def _text_room(self) -> int:
        """How many cells of text there are in each column, beside the gutters."""
        if self._drawing is None:
            return 0
        columns = self._drawing.columns
        return max(1, (self.room.width - columns + 1) // columns - self._drawing.gutter())

    def _measure(self) -> None:
        if self._drawing is None:
            super()._measure()
            return
        hidden = max(0, self._drawing.longest() - self._text_room())
        self.virtual_size = Size(self.room.width + hidden if hidden else 0, len(self._drawing))

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
        width, (left, top) = self.room.width, self.scroll_offset
        index = y + top
        if index >= len(drawing):
            return self.strip((), width)
        under = ""
        if index == self._cursor:
            under = "cursor" if self.has_focus else "cursor-idle"
        cells = drawing.row(index, left + width, is_top=y == 0)
        strips: list[Strip] = []
        free = width
        for number, cell in enumerate(cells):
            if number:
                strips.append(self.strip([Span("│", "number")], 1))
                free -= 1
            mine = free // (len(cells) - number)
            strips.append(self._cell(cell, mine, left, under or cell.under))
            free -= mine
        return Strip.join(strips)

    def _cell(self, cell: Cell, width: int, left: int, under: str) -> Strip:
        gutter = width_of(cell.gutter)
        room = max(0, width - gutter)
        text = width_of(cell.text)
        strips = [self.strip(cell.gutter, gutter, under)]
        whole = self.strip(cell.text, max(text, left + room), under)
        if text > left + room and room:
            strips += [whole.crop(left, left + room - 1), self.strip([Span("…", "dim")], 1, under)]
        else:
            strips.append(whole.crop(left, left + room))
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
        at, top, height = self._cursor or 0, self.scroll_offset.y, max(1, self.room.height)
        if at < top:
            self.scroll_to(y=at, animate=False, immediate=True)
        elif at >= top + height:
            self.scroll_to(y=at - height + 1, animate=False, immediate=True)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and self._cursor is not None:
            self._move_cursor(offset.y + self.scroll_offset.y)
