"""A pane that shows a drawing line by line: texts, differences, boards, documents, transcripts."""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from watchroom_tui.formatters.columns import fit, wrap
from watchroom_tui.formatters.drawing import Cell, Drawing, EstimatedDrawing
from watchroom_tui.formatters.styled_text import Line, Span, cut, mark, width_of
from watchroom_tui.formatters.text_drawing import TextDrawing
from watchroom_tui.keys.actions import VIEW_BINDINGS, Scope
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.textual_compat import LayoutHooks, mark_dirty
from watchroom_tui.widgets.line_widget import LineWidget, content
from watchroom_tui.widgets.search import open_search

MAX_WRAPPED: Final = 4_000
"""Maximum number of rows of a wrapped drawing; the maximum number of characters is 100 times higher. Larger
drawings scroll sideways, because wrapping them would delay keys."""

MAX_COPIED: Final = 100_000
"""Maximum number of characters to copy, because terminals accept little more."""

SLICE: Final = 0.006
"""Maximum seconds of a search before keys are handled."""

FIRST_PAUSE: Final = 0.02
"""Seconds before drawing ahead starts, so that the visible part is painted first."""

PAUSE: Final = 0.005
"""Seconds between two steps of drawing ahead, so that keys are handled."""

ROUGH: Final = 0.02
"""Minimum relative change of an estimated length that updates the scrollbar."""

SCROLLBAR_STEPS: Final = 8
"""Number of steps of the scrollbar per cell."""

FLASH: Final = 1.0
"""Seconds to emphasize changed rows."""

SEARCH_ACTIONS: Final = ("search", "match", "copy")


class TextPane(LineWidget, LayoutHooks, ScrollView, can_focus=True):
    """Pane that shows a `Drawing`, with a cursor on a row if requested.

    Long lines are wrapped. The pane keeps its scroll position and its cursor when the same subject is drawn
    again. Scrolling is not animated, so that the next frame shows the result of a key.
    """

    BINDINGS = VIEW_BINDINGS
    SCOPES: ClassVar[tuple[Scope, ...]] = ("view",)

    IS_SEARCHABLE = True
    """Whether the text can be searched and copied."""

    def __init__(
        self,
        *,
        title: str = "",
        empty: str = "",
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        """Create a pane. ``title`` and ``empty`` are catalogue keys: for the title, and for the text of an
        empty pane."""
        super().__init__(id=id, classes=classes)
        self._title = title
        self._empty = empty
        self._subject: object = None
        self._drawing: Drawing | None = None
        self._cursor: int | None = None
        self._measured_at = 0
        self._heights: dict[tuple[int, tuple[str, ...]], int] = {}
        """The heights of the rows drawn last. They are cached because the next drawing has most of these
        rows."""
        self._starts: list[int] | None = None
        """The first line of each row, and the end. None if lines are not wrapped."""
        self._strips: dict[tuple[int, bool, str, int, int], Strip] = {}
        self._strips_revision = 0
        self._is_settling = False
        self._is_working_ahead = False
        self._sought = ""
        self._shown_foot = ""
        self._pattern: re.Pattern[str] | None = None
        self._matches: Sequence[int] = ()
        """The anchors of all matches."""
        self._match_count: int | None = None
        self._match: int | None = None
        self._match_anchor: int | None = None
        """The anchor of the row with the current match."""
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

        - ``subject``: the identity of the shown object. A new subject starts at the top.
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
        before = None if is_another else self._drawing
        at = self._kept_row
        offset = self._line_of(at) - self.scroll_offset.y if before is not None else 0
        if isinstance(drawing, EstimatedDrawing) and before is not None and before is not drawing:
            drawing.follow(before)
        found = None if before is None else self._find_again(before, drawing, at)
        self._subject, self._drawing = subject, drawing
        last = len(drawing) - 1
        found = None if found is None or last < 0 else min(found, last)
        cursor = 0 if before is None or self._cursor is None else at if found is None else found
        self._cursor = min(cursor, last) if with_cursor and last >= 0 else None
        self._strips.clear()
        size = self._measure(drawing)
        if before is None or not isinstance(drawing, EstimatedDrawing):
            # The length of other drawings is shown below, without another layout.
            self.virtual_size = size
        self._entitle(title)
        if is_another or isinstance(drawing, EstimatedDrawing):
            self._match = self._match_anchor = None
        if is_another:
            self.scroll_to(x=0, y=0, animate=False, immediate=True)
        elif found is not None and self._line_of(found) - offset != self.scroll_offset.y:
            # The text that the person reads keeps its place on the screen.
            self._scroll_to_line(self._line_of(found) - offset)
        if isinstance(drawing, EstimatedDrawing) and drawing.is_flashing:
            self.set_timer(FLASH, partial(self._end_flash, drawing))
        self._settle(self.scroll_offset.y)
        self._show_foot()
        self.renew_search()
        self.refresh()
        self._work_ahead(FIRST_PAUSE)

    @property
    def _kept_row(self) -> int:
        """The row that keeps its place on the screen when the subject is drawn again: under the cursor, or at
        the top."""
        if self._cursor is not None:
            return self._cursor
        return self._row_at(self.scroll_offset.y)[0]

    def _find_again(self, before: Drawing, drawing: Drawing, row: int) -> int | None:
        """Return the row of ``drawing`` with the content of ``row`` in ``before``. None if the content is
        gone."""
        if before is drawing or not 0 <= row < len(before):
            return row
        if isinstance(drawing, EstimatedDrawing) and row == 0:
            return 0
        if type(before) is not type(drawing):
            return None
        anchor = before.anchor(row)
        further = row - before.row_at(anchor)
        moved = drawing.moved(before, anchor)
        return None if moved is None else drawing.row_at(moved) + further

    def _end_flash(self, drawing: EstimatedDrawing) -> None:
        drawing.end_flash()
        self.refresh()

    def clear(self) -> None:
        """Show nothing."""
        self._drawing, self._cursor, self._subject, self._starts = None, None, None, None
        self._strips.clear()
        self.virtual_size = Size(0, 0)
        self._entitle(self.tab_text)
        self._show_foot()
        self.refresh()

    @property
    def drawing(self) -> Drawing | None:
        """The shown drawing."""
        return self._drawing

    @property
    def tab_text(self) -> str:
        """The name on the tab of this pane, shown if only one pane is visible."""
        return texts_of(self)(self._title) if self._title else ""

    def _entitle(self, title: str) -> None:
        self.border_title = content(title)

    def on_mount(self) -> None:
        self._entitle(self.tab_text)

    def foot(self) -> str:
        """Return the text in the lower frame when there is no search."""
        width = self.size.width - 6
        if self._drawing is None or not len(self._drawing) or width <= 0:
            return ""
        return fit(self._drawing.foot(self._cursor or 0), width).rstrip()

    def _show_foot(self) -> None:
        text = self.foot()
        if self._sought:
            text = f"/{sanitize(self._sought)}"
            if self._match_count is not None:
                text += " · " + texts_of(self)("view.matches", count=self._match_count)
        if text != self._shown_foot:
            self._shown_foot = text
            self.border_subtitle = content(text) if text else None

    # -- search and copy

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in SEARCH_ACTIONS and not self.IS_SEARCHABLE:
            return False
        if action == "match" and not self._sought:
            return False
        return super().check_action(action, parameters)

    @property
    def sought(self) -> str:
        """The search words, empty without a search."""
        return self._sought

    async def action_search(self) -> None:
        await open_search(self)

    def action_match(self, step: int) -> None:
        self.go_to_match(step)

    def search_for(self, words: str) -> None:
        """Mark ``words``, and go to the first match from the current position on."""
        if words == self._sought:
            return
        if not self._sought and self._drawing is not None:
            self._searched_from = self._drawing.anchor(self._kept_row)
        self._match = self._match_anchor = None
        self._seek(words, is_new=True)

    def end_search(self) -> bool:
        """End the search. Return False if there was no search."""
        was_sought = bool(self._sought)
        self.search_for("")
        return was_sought

    def renew_search(self) -> None:
        """Repeat the search in the current content, without moving."""
        if self._sought:
            self._seek(self._sought, is_new=False)

    def _seek(self, words: str, *, is_new: bool) -> None:
        self._sought = words
        self._match_count = None if is_new else self._match_count
        self._show_foot()
        work: Callable[[], Awaitable[None]] = partial(self._run_search, words, is_new=is_new)
        self.run_worker(work, group="search", exclusive=True)

    async def _run_search(self, words: str, *, is_new: bool) -> None:
        count = await self.search(words)
        if words == self._sought:
            self._match_count = count
            self._show_foot()
            if count and is_new:
                self.go_to_match(1)

    async def search(self, words: str) -> int:
        """Mark all matches of ``words``, ignoring case, and return their number. Empty words end the
        search."""
        self._pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        matches: list[int] = []
        self._matches = matches
        self._strips.clear()
        self.refresh()
        if self._drawing is None or not words:
            self._match = self._match_anchor = None
            return 0
        until = time.perf_counter() + SLICE
        for found in self._drawing.find(words):
            matches += found
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE
        return len(matches)

    def go_to_match(self, step: int) -> bool:
        """Show the next match, or the previous one if ``step`` is -1. Wrap around. Return False if there are
        no matches."""
        matches, drawing = self._matches, self._drawing
        if not matches or drawing is None:
            return False
        at = self._searched_from - (step > 0) if self._match is None else self._match
        found = bisect_right(matches, at) if step > 0 else bisect_left(matches, at) - 1
        self._match = matches[found % len(matches)]
        row = drawing.row_at(self._match)
        self._match_anchor = drawing.anchor(row)
        self._strips.clear()
        if self._cursor is not None:
            self._move_cursor(row)
        elif not self._shows_row(row):
            height = self.content_area.height
            line = self._settle(self._line_of(row), above=height // 3)
            self._scroll_to_line(line - height // 3)
        self.refresh()
        return True

    def _shows_row(self, row: int) -> bool:
        return 0 <= self._line_of(row) - self.scroll_offset.y < self.content_area.height

    def action_copy(self) -> None:
        text, total = self.copied_text()
        taken = text[:MAX_COPIED]
        self.app.copy_to_clipboard(taken)
        count = taken.count("\n") + (not taken.endswith("\n"))
        key = "list.copied" if count == 1 else "view.copied"
        if len(text) > len(taken):
            key = "view.copied_part"
        self.app.notify(texts_of(self)(key, count=count, total=total), markup=False, timeout=2)

    def copied_text(self) -> tuple[str, int]:
        """Return the text to copy, and its number of lines: the row under the cursor, or all text. Long text
        is cut after at least `MAX_COPIED` characters."""
        if self._drawing is None:
            return "", 0
        if self._cursor is not None:
            return self._drawing.copy_text(self._cursor), 1
        return self._drawing.copy_all(MAX_COPIED)

    # -- layout

    @staticmethod
    def _space(drawing: Drawing, row: int, width: int) -> int:
        """Return the number of cells for text in each column of a row of ``width`` cells, without the
        gutters."""
        columns = drawing.columns
        return max(1, (width - columns + 1) // columns - drawing.gutter(row))

    def _measure(self, drawing: Drawing) -> Size:
        """Return the size of the scrollable content. Before the first layout, lines count as unwrapped."""
        width = self._width_for(drawing)
        known = self._heights if self._measured_at == width else {}
        self._measured_at = width
        self._starts = None
        if width:
            if isinstance(drawing, EstimatedDrawing):
                # Space for a scrollbar is always reserved, so that nothing is drawn twice when it appears.
                drawing.fit(self.container_size.width - self.styles.scrollbar_size_vertical)
            self._starts = self._wrapped_starts(drawing, width, known)
        if self._starts is not None:
            return Size(0, self._starts[-1])
        hidden = max(0, drawing.longest() - self._space(drawing, len(drawing) - 1, width)) if width else 0
        return Size(width + hidden if hidden else 0, len(drawing))

    def _width_for(self, drawing: Drawing) -> int:
        """Return the number of cells of a line, beside a present or expected scrollbar."""
        width, height = self.container_size
        has_bar = self.show_vertical_scrollbar or len(drawing) > height
        return max(0, width - self.styles.scrollbar_size_vertical) if has_bar else width

    def _wrapped_starts(
        self, drawing: Drawing, width: int, known: Mapping[tuple[int, tuple[str, ...]], int]
    ) -> list[int] | None:
        self._heights = {}
        if len(drawing) > MAX_WRAPPED or not drawing.wraps:
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

    def before_scrollbars(self) -> None:
        self._fit_width()

    def after_scrollbars(self) -> None:
        if self._fit_width():
            self.update_scrollbars()
        self._settle(self.scroll_offset.y)
        self._work_ahead(FIRST_PAUSE)

    def _fit_width(self) -> bool:
        """Measure the lines for the current width. Return False if they were already measured."""
        drawing = self._drawing
        if drawing is None or self._measured_at == self._width_for(drawing):
            return False
        top = self._row_at(self.scroll_offset.y)[0]
        anchor = drawing.anchor(top) if isinstance(drawing, EstimatedDrawing) and top else None
        self._strips.clear()
        # Without another layout, because nothing around this widget depends on its size.
        self.set_reactive(TextPane.virtual_size, self._measure(drawing))
        if anchor is not None:
            self._scroll_to_line(drawing.row_at(anchor))
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

    # -- drawings that are estimated

    def _settle(self, line: int, *, above: int = 0, below: int = 0) -> int:
        """Draw the rows from ``above`` lines above ``line`` to ``below`` lines below the window that starts
        at ``line``.

        The number of lines is an estimate until they are drawn. The visible rows keep their place on the
        screen. Return the new number of ``line``.
        """
        drawing, height = self._drawing, self.content_area.height
        if not isinstance(drawing, EstimatedDrawing) or not height or not self._measured_at:
            return line
        found = drawing.settle(line, above, height + below)
        if found + height > len(drawing) and line == self.scroll_offset.y:
            # At the end, the last line is at the bottom.
            found = max(0, drawing.settle(len(drawing) - 1, height, 0) - height + 1)
        self._show_length(drawing, found + below)
        if found != line:
            self._strips.clear()
            if line == self.scroll_offset.y:
                self._scroll_to_line(found)
        return found

    def _show_length(self, drawing: Drawing, top: int, rough: float = ROUGH) -> None:
        """Update the length of the scrollbar if the difference is visible, because the update costs more than
        the rest of a key.

        ``rough``: the maximum relative change to ignore, unless a window at ``top`` needs the new length.
        """
        shown, length, height = self.virtual_size.height, len(drawing), self.content_area.height
        is_needed = top > shown - height or top + height >= length
        if length != shown and (is_needed or abs(length - shown) > rough * shown):
            self.set_reactive(TextPane.virtual_size, Size(0, length))
            self.update_scrollbars()

    def _scroll_to_line(self, line: int) -> None:
        """Scroll to ``line`` without drawing more rows."""
        was_settling, self._is_settling = self._is_settling, True
        try:
            # Forced, because a pane that just became long gets its scrollbar in the next layout.
            self.scroll_to(y=line, animate=False, immediate=True, force=True)
        finally:
            self._is_settling = was_settling

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        # Textual paints the scrollbar for every line, which costs more than the rest of a key.
        bar, height = self.vertical_scrollbar, self.content_area.height
        is_visible = abs(new_value - bar.position) * SCROLLBAR_STEPS * height >= self.virtual_size.height
        if is_visible or not 0 < new_value < self.max_scroll_y:
            bar.position = new_value
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)
        self._settle_scrolled(old_value, new_value)

    def _settle_scrolled(self, old_value: float, new_value: float) -> None:
        """Draw the rows that are visible after scrolling, and move to their exact place."""
        if self._is_settling or not isinstance(self._drawing, EstimatedDrawing):
            return
        before, now = round(old_value), round(new_value)
        lines = now - before
        if now > 0 and abs(lines) <= 3 * self.content_area.height:
            # Move by exactly this number of lines, even if drawing changes the number of lines above.
            now = self._settle(before, above=max(0, -lines), below=max(0, lines)) + lines
            self._scroll_to_line(now)
        self._settle(self.scroll_offset.y)
        self._work_ahead()

    def _work_ahead(self, pause: float = PAUSE) -> None:
        """Draw rows near the visible rows after ``pause`` seconds, before the person scrolls to them."""
        if isinstance(self._drawing, EstimatedDrawing) and not self._is_working_ahead and self.is_attached:
            self._is_working_ahead = True
            self.run_worker(self._run_ahead(pause), group="ahead")

    async def _run_ahead(self, pause: float) -> None:
        try:
            while True:
                await asyncio.sleep(pause)
                drawing, top = self._drawing, self.scroll_offset.y
                if not isinstance(drawing, EstimatedDrawing) or not self._measured_at:
                    return
                found = await drawing.work_ahead(top, self.content_area.height)
                if found is None:
                    self._show_length(drawing, top, rough=0)
                    return
                if drawing is self._drawing:
                    self._take_ahead(drawing, found - top)
                pause = PAUSE
        finally:
            self._is_working_ahead = False

    def _take_ahead(self, drawing: EstimatedDrawing, lines: int) -> None:
        """Show the changes made by drawing ahead. The visible rows moved by ``lines``."""
        if lines:
            self._strips.clear()
            self._scroll_to_line(self.scroll_offset.y + lines)
        self._show_length(drawing, self.scroll_offset.y)
        if drawing.revision != self._strips_revision:
            self._settle(self.scroll_offset.y)
            self.refresh()

    # -- drawing

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        drawing = self._drawing
        width, (left, top) = self.content_area.width, self.scroll_offset
        if drawing is None or not len(drawing):
            lines = wrap(texts_of(self)(self._empty), max(10, width - 2)) if self._empty else ()
            return self.strip([Span(" " + lines[y - 1], "dim")] if 0 < y <= len(lines) else (), width)
        index, part = self._row_at(y + top)
        if index >= len(drawing):
            return self.strip((), width)
        self._drop_old_strips(drawing)
        key = (y + top, y == 0, self.style_under(index), left, width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._draw_line(drawing, index, part, key)
        return strip

    def _drop_old_strips(self, drawing: Drawing) -> None:
        revision = drawing.revision if isinstance(drawing, EstimatedDrawing) else 0
        if self._strips_revision != revision or len(self._strips) > 4 * self.content_area.height:
            self._strips.clear()
            self._strips_revision = revision

    def _draw_line(
        self, drawing: Drawing, index: int, part: int, key: tuple[int, bool, str, int, int]
    ) -> Strip:
        _, is_top, under, left, width = key
        reach = left + width if self._starts is None else 100 * MAX_WRAPPED
        space = self._space(drawing, index, width)
        cells = [self._marked(cell, index) for cell in drawing.row(index, reach, is_top=is_top)]
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
        return Strip.join(strips) if len(strips) > 1 else strips[0]

    def style_under(self, index: int) -> str:
        """Return the style of the whole row at ``index``, empty if the cells have their own styles."""
        if index != self._cursor:
            return ""
        return "cursor" if self.has_focus else "cursor-idle"

    def _marked(self, cell: Cell, row: int) -> Cell:
        if self._pattern is None or self._drawing is None:
            return cell
        is_here = self._match_anchor is not None and self._drawing.anchor(row) == self._match_anchor
        return cell._replace(text=mark(cell.text, self._pattern, "match-here" if is_here else "match"))

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
        if not left and text <= space:
            return self.strip([*cell.gutter, *cell.text], width, under)
        strips = [self.strip(cell.gutter, gutter, under)]
        whole = self.strip(cell.text, max(text, left + space), under)
        if text > left + space and space:
            strips += [whole.crop(left, left + space - 1), self.strip([Span("…", "dim")], 1, under)]
        else:
            strips.append(whole.crop(left, left + space))
        return Strip.join(strips).adjust_cell_length(width)

    # -- scrolling and the cursor

    def show_anchor(self, anchor: int) -> None:
        """Show the row at ``anchor``, at the top if possible."""
        if self._drawing is not None:
            self._scroll_to_line(self._settle(self._line_of(self._drawing.row_at(anchor))))
            self._settle(self.scroll_offset.y)
            self.refresh()

    def shows_anchor(self, anchor: int) -> bool:
        """Return whether the row at ``anchor`` is visible."""
        return self._drawing is not None and self._shows_row(self._drawing.row_at(anchor))

    @property
    def top_anchor(self) -> int:
        """The anchor of the top row."""
        return self._drawing.anchor(self._row_at(self.scroll_offset.y)[0]) if self._drawing is not None else 0

    def action_scroll_by(self, lines: int) -> None:
        if self._cursor is not None:
            self._move_cursor(self._cursor + lines)
            return
        top = self._settle(self.scroll_offset.y, above=max(0, -lines), below=max(0, lines))
        self.scroll_to(y=top + lines, animate=False, immediate=True)

    def action_scroll_pages(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.content_area.height - 1))

    def action_scroll_sideways(self, cells: int) -> None:
        # Forced, so that it also works without a scrollbar.
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True, force=True)

    def action_scroll_to_end(self, end: int) -> None:
        if self._cursor is not None and self._drawing is not None:
            self._move_cursor(len(self._drawing) if end else 0)
            return
        if end and isinstance(self._drawing, EstimatedDrawing):
            height = self.content_area.height
            self._scroll_to_line(self._settle(len(self._drawing) - 1, above=height) - height + 1)
        self.scroll_to(y=self.virtual_size.height if end else 0, animate=False, immediate=True)

    def _move_cursor(self, index: int) -> None:
        last = len(self._drawing) - 1 if self._drawing is not None else 0
        before, self._cursor = self._cursor, max(0, min(index, last))
        self._show_cursor()
        if self._cursor != before:
            self._show_foot()
            self.refresh()

    def _show_cursor(self) -> None:
        """Make the row under the cursor visible with as little scrolling as possible."""
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
        """Open the row under the cursor: a click does the same as enter."""
