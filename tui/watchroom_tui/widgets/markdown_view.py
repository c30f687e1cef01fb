"""A rendered board. Only visible lines are drawn, so that ten megabytes are as fast as ten lines.

The screen is anchored to a place in the text, not to a line number, so that edits elsewhere move nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.geometry import Size
from textual.strip import Strip
from watchroom_whiteboards.outline import Heading

from watchroom_tui.formatters.styled_text import Line, Span, mark
from watchroom_tui.markdown.index import Index, Outline, moved
from watchroom_tui.markdown.page import TOP, Page, PagePosition
from watchroom_tui.markdown.renderer import MIN_WIDTH
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import copyable
from watchroom_tui.widgets.line_view import LineView
from watchroom_tui.widgets.scrollable import MAX_COPIED

if TYPE_CHECKING:
    from watchroom_tui.markdown.text_finder import Finder

_SLICE: Final = 0.006
"""Max seconds of background work before keys are handled."""

_FIRST: Final = 0.02
_PAUSE: Final = 0.005
_MARGIN: Final = " "
_FLASH: Final = 1.0
_LOOK_AHEAD: Final = 3
"""Max screens to scroll line by line. Longer jumps go to the scrollbar's position."""

_ROUGH: Final = 0.02
"""Min relative change of the estimated length before the scrollbar of a long board follows."""

_STEPS: Final = 8
"""Steps of the scrollbar per cell."""


class MarkdownView(LineView):
    """Shows a board. It sends the messages of its siblings. Search, outline and `go_to` use byte offsets."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._page: Page | None = None
        self._place = TOP
        self._rows: list[PagePosition] | None = None
        self._strips: dict[PagePosition, Strip] = {}
        self._placed = 0
        self._is_placing = False
        self._is_growing = False
        self._is_preparing = False
        self._wish: int | None = None
        self._finder: Finder | None = None
        self._match: int | None = None
        self._flashing: tuple[int, int] | None = None
        self._flashes = 0
        self._loading: set[str] = set()

    # -- content

    def show_board(self, subject: object, data: bytes, *, title: str) -> None:
        """Show the board ``data`` (UTF-8).

        ``subject`` is what it is about. For the same subject the screen keeps its place, and changes flash. A
        new subject starts at the top.
        """
        self._drawing, self._cursor = None, None
        if self._page is not None and subject == self._subject:
            self._edit(self._page, data)
        else:
            self._subject = subject
            self._page = Page(Index(data), self._text_width())
            self._place, self._wish, self._flashing = TOP, None, None
            self._finder, self._match = None, None
        self._entitle(title)
        self._redraw()
        self._begin_to_grow()

    def show_notice(self, subject: object, lines: Sequence[Line], *, title: str) -> None:
        self._page, self._rows = None, None
        super().show_notice(subject, lines, title=title)

    def clear(self) -> None:
        self._page, self._rows = None, None
        super().clear()

    def _edit(self, page: Page, data: bytes) -> None:
        if data == page.index.data:
            return
        old, top = page.index.data, page.offset(self._place)
        begin = page.place(top)
        further = self._place.line - begin.line if begin.chunk == self._place.chunk else 0
        change = page.edit(data)
        is_at_top = self._place == TOP
        self._place = TOP if is_at_top else page.move(page.place(moved(old, data, change, top)), further)
        self._match = None
        self._flash(change.start, max(change.new_end, change.start + 1))
        self.renew_search()

    def _flash(self, start: int, end: int) -> None:
        self._flashing = (start, end)
        self._flashes += 1
        self.set_timer(_FLASH, partial(self._end_flash, self._flashes))

    def _end_flash(self, number: int) -> None:
        if number == self._flashes:
            self._flashing = None
            self._strips.clear()
            self.refresh()

    # -- growing

    @property
    def is_growing(self) -> bool:
        """Whether the board is still being parsed."""
        return self._is_growing or (self._page is not None and not self._page.index.is_whole)

    def _begin_to_grow(self) -> None:
        if not self._is_growing and self.content_area.height:
            self._is_growing = True
            # The visible part is painted first.
            self.set_timer(_FIRST, self._grow)

    def _grow(self) -> None:
        """Parse more of the board for `_SLICE` seconds, and continue later if there is more."""
        page = self._page
        if page is None:
            self._is_growing = False
            return
        until = time.perf_counter() + _SLICE
        while time.perf_counter() < until and page.index.grow():
            pass
        if page.index.is_whole:
            self._is_growing = False
            self._finish(page)
        else:
            self.set_timer(0.001, self._grow)

    def _finish(self, page: Page) -> None:
        """Use the complete index: link references, length, and the place of a pending `go_to`."""
        if page.index.references:
            page.forget()
        wish, self._wish = self._wish, None
        if wish is not None:
            self._place = page.last(self.content_area.height) if wish < 0 else page.place(wish)
        self._redraw()

    def _prepare(self) -> None:
        """Draw the next chunks above or below, before they are scrolled to."""
        page = self._page
        self._is_preparing = page is not None and page.prepare(self._place, self.content_area.height)
        if self._is_preparing:
            self.set_timer(_PAUSE, self._prepare)
        elif page is not None and page.is_measured:
            self._show_scroll_position(page)

    # -- scrolling

    def _redraw(self) -> None:
        self._strips.clear()
        self._move_to(self._place)

    def _move_to(self, place: PagePosition) -> None:
        """Move ``place`` to the top, and the scrollbar to its estimated position."""
        page = self._page
        if page is None:
            return
        self._place, self._rows = place, None
        if self.content_area.height and self.is_attached:
            self._visible(page)
        self._show_scroll_position(page)
        self.refresh()
        if not self._is_preparing:
            self._is_preparing = True
            self.call_after_refresh(self.set_timer, _PAUSE, self._prepare)

    def _show_scroll_position(self, page: Page) -> None:
        """Move the scrollbar if that is visible, because it costs more than the rest of a key."""
        top, height = page.top(self._place), self.content_area.height
        total = max(page.total(), top + height if self._place != TOP else 0)
        shown, is_end = self.virtual_size.height, len(self._rows or ()) < height
        rough = 0 if page.is_measured else _ROUGH * shown
        if abs(total - shown) > rough or top > shown - height or is_end:
            self.virtual_size = Size(0, total)
        if abs(top - self._placed) * _STEPS * height < total and self._place != TOP:
            return
        self._is_placing = True
        try:
            self.scroll_to(y=top, animate=False, immediate=True)
            self._placed = self.scroll_offset.y
        finally:
            self._is_placing = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        page, line = self._page, round(new_value)
        if page is None or self._is_placing or line == self._placed:
            return
        lines = line - self._placed
        if line == 0:
            self._move_to(TOP)
        elif abs(lines) <= _LOOK_AHEAD * self.content_area.height:
            self._move_to(page.move(self._place, lines))
        else:
            self._move_to(page.at(line))

    def action_scroll_by(self, lines: int) -> None:
        if self._page is None:
            super().action_scroll_by(lines)
        else:
            self._wish = None
            self._move_to(self._page.move(self._place, lines))

    def action_scroll_to_end(self, end: int) -> None:
        page = self._page
        if page is None:
            super().action_scroll_to_end(end)
        elif not end:
            self._wish = None
            self._move_to(TOP)
        elif page.index.is_whole:
            self._move_to(page.last(self.content_area.height))
        else:
            self._wish = -1

    def on_resize(self) -> None:
        page = self._page
        if page is None:
            super().on_resize()
            return
        self._fit(page)
        self._redraw()
        if not page.index.is_whole:
            self._begin_to_grow()

    def _fit(self, page: Page) -> None:
        """Draw the board for the current width. The first paint comes before the resize event."""
        if self._text_width() != page.width:
            top = page.offset(self._place) if self._place != TOP else 0
            page.resize(self._text_width())
            self._place, self._rows = page.place(top) if top else TOP, None
            self._strips.clear()

    def _text_width(self) -> int:
        """Return the width of the text. Space for a scrollbar is always reserved, so that nothing is drawn
        twice when it appears."""
        beside = self.styles.scrollbar_size_vertical + 2 * len(_MARGIN)
        return max(MIN_WIDTH, self.content_region.width - beside)

    # -- outline and places

    @property
    def at_offset(self) -> int:
        """The byte offset of the top line."""
        return self._page.offset(self._place) if self._page is not None else 0

    def outline(self) -> Sequence[Heading]:
        """Return the headings of the parsed part of the board."""
        return Outline(self._page.index) if self._page is not None else ()

    def go_to(self, offset: int) -> None:
        """Show the line that contains the byte at ``offset``, at the top if possible."""
        page = self._page
        if page is None:
            return
        if page.index.is_whole or offset < page.index.end:
            self._wish = None
            self._move_to(page.place(offset))
        else:
            self._wish = offset

    def shows(self, offset: int) -> bool:
        """Return whether the line that contains the byte at ``offset`` is visible."""
        page = self._page
        return page is not None and page.place(offset) in self._visible(page)

    # -- search

    async def search(self, words: str) -> int:
        page = self._page
        if page is None:
            return await super().search(words)
        self._match = None
        from watchroom_tui.markdown.text_finder import Finder

        finder = self._finder = Finder(words) if words else None
        self._strips.clear()
        self.refresh()
        if finder is None:
            return 0
        count = 0
        until = time.perf_counter() + _SLICE
        for found in finder.matches(page.index.data):
            count += len(found)
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + _SLICE
        return count

    def go_to_match(self, step: int) -> bool:
        page, finder = self._page, self._finder
        if page is None:
            return super().go_to_match(step)
        if finder is None:
            return False
        data = page.index.data
        at = self.at_offset if self._match is None else self._match
        if step > 0:
            found = finder.next(data, at if self._match is None else at + 1)
            found = finder.next(data, 0) if found < 0 else found
        else:
            found = finder.last(data, at)
            found = finder.last(data, len(data)) if found < 0 else found
        if found < 0:
            return False
        self._match = found
        self._strips.clear()
        place = page.place(found)
        if place in self._visible(page):
            self.refresh()
        else:
            self._move_to(page.move(place, -(self.content_area.height // 3)))
        return True

    def copied_text(self) -> tuple[str, int]:
        page = self._page
        if page is None:
            return super().copied_text()
        data = page.index.data
        # A cut can leave a partial character, which has at most four bytes.
        taken = data[: 4 * MAX_COPIED].decode("utf-8", "ignore").removesuffix("\n")
        lines = taken[: MAX_COPIED + 1].split("\n")
        return "\n".join(map(copyable, lines)), data.count(b"\n") + (not data.endswith(b"\n"))

    # -- drawing

    def _visible(self, page: Page) -> list[PagePosition]:
        """Return the places of the visible lines. At the end of the board the last line is at the bottom."""
        self._fit(page)
        if self._rows is None:
            height = self.content_area.height
            self._rows = page.window(self._place, height)
            if len(self._rows) < height and self._place != TOP:
                self._place = page.last(height)
                self._rows = page.window(self._place, height)
            waiting = {each for row in self._rows for each in page.drawn(row.chunk).waiting}
            if waiting - self._loading:
                self._loading |= waiting
                self.run_worker(self._load(waiting))
        return self._rows

    async def _load(self, languages: set[str]) -> None:
        """Load lexers in a thread, while the person works."""
        from watchroom_tui.markdown import code

        for language in sorted(languages):
            await asyncio.to_thread(code.load, language)
        if self._page is not None:
            self._page.forget()
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        page = self._page
        if page is None:
            return super().render_line(y)
        rows, width = self._visible(page), self.content_area.width
        if y >= len(rows):
            is_empty = not rows and y == 1
            return self.strip([Span(" " + texts_of(self)(self._empty), "dim")] if is_empty else (), width)
        strip = self._strips.get(rows[y])
        if strip is None or strip.cell_length != width:
            strip = self._strips[rows[y]] = self._drawn_strip(page, rows[y], width)
        return strip

    def _drawn_strip(self, page: Page, place: PagePosition, width: int) -> Strip:
        if len(self._strips) > 4 * max(self.content_area.height, 1):
            self._strips.clear()
        line = page.line(place)
        spans = line.spans
        under = ""
        if self._flashing is not None and self._flashing[0] <= page.offset(place) < self._flashing[1]:
            under = "flash"
        if self._finder is not None:
            style = "match-here" if self._is_at_match(page, place) else "match"
            spans = mark(spans, self._finder.pattern, style)
        return self.strip([Span(_MARGIN), *spans], width, under)

    def _is_at_match(self, page: Page, place: PagePosition) -> bool:
        """Return whether this line shows a part of the source line that contains the match."""
        if self._match is None:
            return False
        here = page.place(self._match)
        return here.chunk == place.chunk and page.line(here).source == page.line(place).source
