"""A list that draws only visible lines, so that 100,000 items are as fast as ten.

The cursor stays on its item, at the same place, when others come and go. A list that grows at its top holds
new items back while the person reads, and counts them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters.columns import format_age, wrap
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_rows import ItemRows
from watchroom_tui.widgets.line_widget import LineWidget, content
from watchroom_tui.widgets.search import open_search

T = TypeVar("T")

MAX_KEPT: Final = 2000
"""Max cached lines."""


class LineList(LineWidget, ScrollView, Generic[T], can_focus=True):
    """Base of all lists. Subclasses draw items and tell them apart."""

    BINDINGS = bindings("list")

    SCOPES: ClassVar[tuple[Scope, ...]] = ("list",)
    """The scopes of the keys that work while the list has the focus."""

    GROWS_AT_TOP = False
    """Whether new items come first. Then the list holds them back unless the cursor is on the first item."""

    ITEMS_CHANGE = False
    """Whether the appearance of an item can change."""

    class Highlighted(Message):
        """The cursor moved to another item, or to none: see ``item`` of the sender."""

        def __init__(self, sender: Widget) -> None:
            super().__init__()
            self.sender = sender

        @property
        def control(self) -> Widget:
            return self.sender

    class Counted(Highlighted):
        """The number of items changed."""

    class Opened(Highlighted):
        """The item under the cursor was opened with enter or a double click."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._title = title
        self._empty = empty
        self._all: Sequence[T] = ()
        self._shown: Sequence[T] = ()
        self._held: Sequence[T] | None = None
        self._subject: Hashable = None
        self._cursor = 0
        self._rows = ItemRows(0)
        self._filter = ""
        self._titles = ("", "")
        self._drawn: list[tuple[Hashable, ...]] = []
        self._kept: dict[tuple[Hashable, ...], Strip] = {}

    @abstractmethod
    def item_key(self, item: T) -> Hashable:
        """Return the identity of the item across updates."""

    @abstractmethod
    def line(self, item: T, width: int) -> Line:
        """Return the item's line in ``width`` cells."""

    def lines(self, item: T, width: int, most: int) -> Sequence[Line]:
        """Return the item's lines, at most ``most``."""
        return [self.line(item, width)]

    def render_key(self, item: T, width: int) -> Hashable:
        """Return the appearance of the item in ``width`` cells. A line is drawn again if its key differs."""
        return tuple(self.line(item, width))

    @property
    def item(self) -> T | None:
        """The item under the cursor."""
        return self._shown[self._cursor] if 0 <= self._cursor < len(self._shown) else None

    @property
    def items(self) -> Sequence[T]:
        """The visible items."""
        return self._shown

    def show(self, items: Sequence[T]) -> None:
        """Show these items. The cursor stays on its item, and the item at its place."""
        if items is not self._all:
            before, self._all = self._all, items
            is_held = self.GROWS_AT_TOP and self._is_away_from_top() and self._has_grown(before)
            # An earlier moment has its own rows, so nothing is held back.
            if is_held and dashboard_of(self).is_live:
                self._held = items
                self._retitle()
                self._renew()
            else:
                self._held = None
                self._take(items)
        self._redraw_changed()

    def show_of(self, subject: Hashable, items: Sequence[T]) -> None:
        """Show the items of ``subject``. A new subject starts at the first item."""
        if subject == self._subject:
            self.show(items)
            return
        self._subject, self._all, self._held, self._cursor = subject, items, None, 0
        self.scroll_to(y=0, animate=False, immediate=True)
        self._take(items)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows of the items, or of the text for an empty list, for an ``auto``
        height."""
        if not self._all:
            return len(self.empty_lines(width)) + 1
        return self.count_rows(self._all, width)

    def move_to(self, key: Hashable) -> bool:
        """Move the cursor to the item with this key. If the filter hides it, end the filter. Return False if
        there is no such item."""
        for index, item in enumerate(self._shown):
            if self.item_key(item) == key:
                self._move_cursor(index)
                return True
        return self.end_search() and self.move_to(key)

    def _renew(self) -> None:
        """Update the visible items while new ones are held back."""
        if self.ITEMS_CHANGE and self._held is not None:
            now = {self.item_key(item): item for item in self._held}
            self._shown = [now.get(self.item_key(item), item) for item in self._shown]

    def _has_grown(self, before: Sequence[T]) -> bool:
        """Return whether there are new items at the top, or held-back ones."""
        if self._held is not None or not before or not self._all:
            return True
        return self.item_key(before[0]) != self.item_key(self._all[0])

    def _is_away_from_top(self) -> bool:
        return bool(self._shown) and (self._cursor > 0 or self.scroll_offset.y > 0)

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._take(held)
            self._retitle()
            self.refresh()

    def _take(self, items: Sequence[T]) -> None:
        before, before_cursor, before_row = self.item, self._cursor, self._rows.first_row_of(self._cursor)
        before_key = None if before is None else self.item_key(before)
        self._shown = self._filtered(items)
        self._cursor = self._index_of(before_key, before_cursor) if not self._is_at_live_top() else 0
        if self._arrange():
            self.post_message(self.Counted(self))
        if self._cursor != before_cursor and before_key is not None:
            # The line under the cursor keeps its place on the screen.
            self._scroll_to_line(self.scroll_offset.y + self._rows.first_row_of(self._cursor) - before_row)
        self._retitle()
        after = self.item
        if (None if after is None else self.item_key(after)) != before_key:
            self.post_message(self.Highlighted(self))

    def _arrange(self) -> bool:
        """Assign rows to items. Return False if the total is unchanged."""
        before, self._rows = self._rows, self.arrange_rows()
        if not self._rows.has_same_heights(before):
            self.refresh()
        size = Size(0, self._rows.total)
        if size == self.virtual_size:
            return False
        self.virtual_size = size
        self.refresh()
        return True

    def arrange_rows(self) -> ItemRows:
        """Return the rows of the visible items."""
        return ItemRows(len(self._shown))

    def count_rows(self, items: Sequence[T], width: int) -> int:
        """Return the number of rows that ``items`` need in ``width`` cells."""
        return len(items)

    def _is_at_live_top(self) -> bool:
        return self.GROWS_AT_TOP and self._cursor == 0

    def _index_of(self, key: Hashable, near: int) -> int:
        if key is None:
            return 0
        if near < len(self._shown) and self.item_key(self._shown[near]) == key:
            return near
        for index, item in enumerate(self._shown):
            if self.item_key(item) == key:
                return index
        return max(0, min(near, len(self._shown) - 1))

    def _filtered(self, items: Sequence[T]) -> Sequence[T]:
        if not self._filter:
            return items
        wanted = self._filter.casefold()
        return [item for item in items if wanted in self.item_text(item).casefold()]

    def item_text(self, item: T) -> str:
        """Return the text that filters search."""
        return "".join(span.text for span in self.line(item, 400))

    def render_line(self, y: int) -> Strip:
        width = self.content_area.width
        index, part = self._rows.item_at(y + self.scroll_offset.y)
        look = self._appearance(index, part, width)
        while len(self._drawn) <= y:
            self._drawn.append(())
        self._drawn[y] = look
        strip = self._kept.get(look)
        if strip is None:
            strip = self._drawn_at(index, part, width)
            if len(self._kept) > MAX_KEPT:
                self._kept.clear()
            self._kept[look] = strip
        return strip

    def _appearance(self, index: int, part: int, width: int) -> tuple[Hashable, ...]:
        if index >= len(self._shown):
            return (None, index if not self._shown else -1, width, self._filter)
        height = self._rows.height_of(index)
        return (self.render_key(self._shown[index], width), self._cursor_style(index), width, part, height)

    def _cursor_style(self, index: int) -> str:
        if index != self._cursor:
            return ""
        return "cursor" if self.has_focus else "cursor-idle"

    def _drawn_at(self, index: int, part: int, width: int) -> Strip:
        if index < len(self._shown):
            return self.strip(self._part_of(index, part, width), width, self._cursor_style(index))
        if not self._shown:
            lines = self.empty_lines(width)
            if 0 < index <= len(lines):
                return self.strip([Span(" " + lines[index - 1], "dim")], width)
        return self.strip((), width)

    def _part_of(self, index: int, part: int, width: int) -> Line:
        item, height = self._shown[index], self._rows.height_of(index)
        if height == 1:
            return self.line(item, width)
        lines = self.lines(item, width, height)
        # The text may be shorter than when the rows were assigned.
        return lines[part] if part < len(lines) else ()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._kept.clear()

    def empty_lines(self, width: int) -> list[str]:
        """Return the text for an empty list: what will appear, and how to get it."""
        texts = texts_of(self)
        text = texts("list.no_match", filter=self._filter) if self._filter else texts(self._empty)
        return wrap(sanitize(text), max(10, width - 2))

    def redraw(self) -> None:
        """Draw the lines again whose appearance changed."""
        self._redraw_changed()

    def _redraw_changed(self) -> None:
        """Draw the visible lines again whose appearance changed."""
        self._arrange()
        width, top = self.content_area.width, self.scroll_offset.y
        for y in range(min(len(self._drawn), self.content_area.height)):
            if self._drawn[y] != self._appearance(*self._rows.item_at(y + top), width):
                self.refresh_line(y + top)

    def on_mount(self) -> None:
        self._retitle()

    def _retitle(self) -> None:
        texts = texts_of(self)
        parts = []
        if self._held is not None:
            parts.append(texts("list.new", count=self._count_new()))
        if self._filter:
            parts.append(f"/{self._filter}")
            parts.append(texts("list.matches", count=len(self._shown)))
        titles = (self.title_text(texts(self._title)), " · ".join(parts))
        if titles != self._titles:
            self._titles = titles
            self.border_title = content(titles[0])
            self.border_subtitle = content(titles[1]) if parts else None

    def title_text(self, title: str) -> str:
        """Return the current title."""
        return title

    @property
    def tab_text(self) -> str:
        """The name on this pane's tab, if only one pane is visible."""
        return f"{self._titles[0]} {len(self._shown)}"

    def _count_new(self) -> int:
        if not self._held or not self._shown:
            return 0
        first = self.item_key(self._shown[0])
        for index, item in enumerate(self._held):
            if self.item_key(item) == first:
                return index
        return len(self._held)

    def _move_cursor(self, index: int) -> None:
        index = max(0, min(index, len(self._shown) - 1))
        if index == 0:
            self._release()
        before, self._cursor = self._cursor, index
        self._show_cursor()
        if before != index:
            self._refresh_item(before)
            self._refresh_item(index)
            self.post_message(self.Highlighted(self))

    def _show_cursor(self) -> None:
        """Scroll the minimum that makes the cursor's line visible."""
        top, height = self.scroll_offset.y, self.content_area.height
        if not height:
            return  # Not visible yet: `on_resize` calls this again.
        rows = self._rows.rows_of(self._cursor)
        if rows.start < top:
            self._scroll_to_line(rows.start)
        elif rows.stop > top + height:
            self._scroll_to_line(min(rows.start, rows.stop - height))

    def _scroll_to_line(self, y: int) -> None:
        # Forced, because a list that has just become long has no scrollbar before the next layout.
        self.scroll_to(y=y, animate=False, immediate=True, force=True)

    def on_resize(self) -> None:
        self._arrange()
        self._show_cursor()

    def on_focus(self) -> None:
        self._refresh_item(self._cursor)

    def on_blur(self) -> None:
        self._refresh_item(self._cursor)

    def _refresh_item(self, index: int) -> None:
        for row in self._rows.rows_of(index):
            self.refresh_line(row)

    def action_move(self, step: int) -> None:
        self._move_cursor(self._cursor + step)

    def action_page(self, pages: int) -> None:
        row = self._rows.first_row_of(self._cursor) + pages * max(1, self.content_area.height - 1)
        index, _part = self._rows.item_at(max(0, row))
        # An item may be as high as a page.
        self._move_cursor(index if index != self._cursor else index + pages)

    def action_first(self) -> None:
        self._move_cursor(0)

    def action_last(self) -> None:
        self._move_cursor(len(self._shown) - 1)

    def action_open(self) -> None:
        if self.item is not None:
            self.post_message(self.Opened(self))

    def action_copy(self) -> None:
        if self.item is not None:
            self.app.copy_to_clipboard(self.copy_text(self.item))
            self.app.notify(texts_of(self)("list.copied"), markup=False, timeout=2)

    def copy_text(self, item: T) -> str:
        """Return the text for the clipboard."""
        return self.item_text(item).strip()

    async def action_filter(self) -> None:
        await open_search(self)

    @property
    def sought(self) -> str:
        """The filter's words, empty without a filter."""
        return self._filter

    def search_for(self, words: str) -> None:
        """Show only items that contain ``words``."""
        if words != self._filter:
            self.set_filter(words)

    def end_search(self) -> bool:
        """Remove the filter. Return False if there was none."""
        was_filtered = bool(self._filter)
        self.search_for("")
        return was_filtered

    def set_filter(self, text: str) -> None:
        """Show only items whose text contains ``text``."""
        self._filter = text
        self._held = None
        self._take(self._all)
        self._show_cursor()
        self.refresh()

    def age_of(self, row: Row | None) -> str:
        """Return the age of a row, as lists show it."""
        return format_age(row.time, now_of(self)) if row else ""

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index, _part = self._rows.item_at(offset.y + self.scroll_offset.y)
        if index < len(self._shown):
            # A double click also opens, because its second click is on the selected item.
            is_opened = index == self._cursor
            self._move_cursor(index)
            if is_opened:
                self.action_open()
