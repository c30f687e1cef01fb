"""A list in columns that draws only visible lines, so that 100,000 items are as fast as ten.

The cursor stays on its item, at the same place, when other items come and go. Lists that grow at the top hold
back and count new items while the person reads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters.columns import Column, format_age, wrap
from watchroom_tui.formatters.styled_text import Line, Span, align_cells, cut, wrap_cells
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_layout import ColumnWidths, ItemRows, fit_heights
from watchroom_tui.widgets.line_widget import LineWidget, content
from watchroom_tui.widgets.search import open_search

T = TypeVar("T")

Wrapping: TypeAlias = Literal["never", "to-fit", "always"]

MAX_KEPT: Final = 2000
"""Maximum number of cached lines, and of cached heights."""
MAX_WRAPPED: Final = 50
"""Maximum number of items with several rows, because the heights of all these items are computed."""
MAX_CHARACTERS: Final = 2000
"""Maximum number of characters of a drawn text. Six rows of a wide terminal hold fewer."""
MAX_ROWS: Final = 6
"""Maximum number of rows of an item. Longer texts are shown in the item's own view."""


class ItemList(LineWidget, ScrollView, Generic[T], can_focus=True):
    """Base of all lists. Subclasses return the cells and the identity of an item.

    Each column is as wide as its longest text so far, so that new items do not move the other items. Columns
    do not become narrower while the same subject is shown and items are only added.
    """

    BINDINGS = bindings("list")

    COLUMNS: ClassVar[Sequence[Column]] = (Column(grows=True),)

    WRAPS: ClassVar[Wrapping] = "to-fit"
    """When items can have several rows: never, only if all items stay visible, or always."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("list",)
    """The scopes of the keys that work while the list has the focus."""

    GROWS_AT_TOP = False
    """Whether new items come first. They are held back unless the first item is visible and under the
    cursor."""

    ITEMS_CHANGE = False
    """Whether the appearance of an item can change."""

    class Highlighted(Message):
        """Message: the cursor moved to another item, or the list became empty. See the ``item`` of the
        sender."""

        def __init__(self, sender: Widget) -> None:
            super().__init__()
            self.sender = sender

        @property
        def control(self) -> Widget:
            return self.sender

    class Counted(Highlighted):
        """Message: the number of items changed."""

    class Opened(Highlighted):
        """Message: the person opened the item under the cursor with enter or a double click."""

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
        self._widths = ColumnWidths(self.COLUMNS)
        self._heights: dict[Hashable, int] = {}
        self._measured_at = -1
        self._wanted_rows = 0

    @abstractmethod
    def item_key(self, item: T) -> Hashable:
        """Return the identity of the item across updates."""

    @abstractmethod
    def cells(self, item: T) -> Sequence[Line]:
        """Return the sanitized text of each column of the item."""

    @property
    def item(self) -> T | None:
        """The item under the cursor."""
        return self._shown[self._cursor] if 0 <= self._cursor < len(self._shown) else None

    @property
    def items(self) -> Sequence[T]:
        """The visible items."""
        return self._shown

    def show(self, items: Sequence[T]) -> None:
        """Show ``items``. The cursor stays on its item, and the item stays at its place on the screen."""
        if len(items) < len(self._all):
            # Removed items need no width.
            self._forget_widths()
        if items is not self._all:
            before, self._all = self._all, items
            is_held = self.GROWS_AT_TOP and self._is_away_from_top() and self._has_grown(before)
            # Earlier moments have their own rows, so new items are held back only while live.
            if is_held and dashboard_of(self).is_live:
                self._held = items
                self._retitle()
                self._renew()
            else:
                self._held = None
                self._take(items)
        self.redraw_changed()

    def show_of(self, subject: Hashable, items: Sequence[T]) -> None:
        """Show the items of ``subject``. A new subject starts at the first item."""
        if subject == self._subject:
            self.show(items)
            return
        self._forget_widths()
        self._subject, self._all, self._held, self._cursor = subject, items, None, 0
        self.scroll_to(y=0, animate=False, immediate=True)
        self._take(items)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height for ``auto``: the number of rows of the items, or of the text for an empty
        list."""
        if not self._all:
            return len(self.empty_lines(width)) + 1
        return ItemRows(len(self._all), self._wanted_heights(self._all, width)).total

    def move_to(self, key: Hashable) -> bool:
        """Move the cursor to the item with this key. Show new items that are held back. End the filter if it
        hides the item. Return False if the item does not exist."""
        self._release()
        for index, item in enumerate(self._shown):
            if self.item_key(item) == key:
                self._move_cursor(index)
                return True
        return self.end_search() and self.move_to(key)

    def _renew(self) -> None:
        """Update the visible items while new items are held back."""
        if self.ITEMS_CHANGE and self._held is not None:
            now = {self.item_key(item): item for item in self._held}
            self._shown = [now.get(self.item_key(item), item) for item in self._shown]

    def _has_grown(self, before: Sequence[T]) -> bool:
        """Return whether there are new items at the top, or items that are held back."""
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
        before, self._rows = self._rows, self._assign_rows()
        if not self._rows.has_same_heights(before):
            self.refresh()
        size = Size(0, self._rows.total)
        if size == self.virtual_size:
            return False
        self.virtual_size = size
        self.refresh()
        self._retitle()
        return True

    def _assign_rows(self) -> ItemRows:
        area, count = self.content_area, len(self._shown)
        is_full = self.WRAPS == "to-fit" and count >= area.height and not self.styles.is_auto_height
        # Before the first layout the height is unknown. A full list has no rows to give.
        wanted = () if is_full or not area.width else self._wanted_heights(self._shown, area.width)
        if self._wanted_rows != (rows := sum(wanted)):
            self._wanted_rows = rows
            if self.styles.is_auto_height:
                self.refresh(layout=True)
        if self.WRAPS == "to-fit":
            return ItemRows(count, fit_heights(wanted, count, area.height))
        # Limited to the height of the list, because the end of a higher item could not be read.
        return ItemRows(count, [min(height, max(1, area.height)) for height in wanted])

    def _wanted_heights(self, items: Sequence[T], width: int) -> Sequence[int]:
        """Return the number of rows that each of the first ``items`` needs. Empty if each item has one
        row."""
        if self.WRAPS == "never" or (self.WRAPS == "to-fit" and len(items) > MAX_WRAPPED):
            return ()
        if self._measured_at != width or len(self._heights) > MAX_KEPT:
            self._measured_at = width
            self._heights.clear()
        keyed = [(self._render_key(item), item) for item in items[:MAX_WRAPPED]]
        self._widen([self._bounded_cells(item) for key, item in keyed if key not in self._heights])
        heights = []
        for key, item in keyed:
            height = self._heights.get(key)
            if height is None:
                # Drawing a longer time widens a column, which clears the heights.
                height = len(self._lines(item, width, MAX_ROWS))
                self._heights[key] = height
            heights.append(height)
        return heights

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
        return " ".join("".join(span.text for span in cell) for cell in self.cells(item))

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
            return (None, -1, width) if self._shown else (None, index, width, *self.empty_lines(width))
        height = self._rows.height_of(index)
        return (self._render_key(self._shown[index]), self._cursor_style(index), width, part, height)

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
            return align_cells(self.COLUMNS, *self._measured(item, width))
        lines = self._lines(item, width, height)
        # The text may be shorter than when the rows were assigned.
        return lines[part] if part < len(lines) else ()

    # -- columns

    def _render_key(self, item: T) -> Hashable:
        """Return the appearance of the item. Its line is drawn again if the appearance changed.

        The widths of the columns are not included, because `_widen` drops all drawn lines when a width
        changes.
        """
        return tuple(map(tuple, self._bounded_cells(item)))

    def _lines(self, item: T, width: int, most: int) -> Sequence[Line]:
        return wrap_cells(self.COLUMNS, *self._measured(item, width), most)

    def _measured(self, item: T, width: int) -> tuple[Sequence[Line], Sequence[int]]:
        """Return the cells of the item and their widths."""
        if not self._widths.is_known:
            # Measure all visible items before drawing the first, so that later lines do not move it.
            top = self.scroll_offset.y
            visible = self._shown[top : top + self.content_area.height]
            self._widths.widen([self._bounded_cells(each) for each in visible])
        cells = self._bounded_cells(item)
        self._widen([cells])
        return cells, self._widths.share(width)

    def _bounded_cells(self, item: T) -> Sequence[Line]:
        """Return the cells, cut to `MAX_CHARACTERS`. A request lists all its calls, and wrapping 60,000 wide
        characters takes 0.2 s."""
        cells = self.cells(item)
        if any(len(span.text) > MAX_CHARACTERS for cell in cells for span in cell):
            return [cut(cell, 0, MAX_CHARACTERS) for cell in cells]
        return cells

    def _widen(self, items: Sequence[Sequence[Line]]) -> None:
        """Widen the columns for the cells of ``items``."""
        if self._widths.widen(items):
            # Lines drawn before have narrower columns.
            self._kept.clear()
            self._heights.clear()
            self.refresh()

    def _forget_widths(self) -> None:
        """Forget the widths, because each subject has its own widths."""
        self._widths.forget()
        self._kept.clear()
        self._heights.clear()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._kept.clear()

    def empty_lines(self, width: int) -> list[str]:
        """Return the lines for an empty list: what it will contain, and how to fill it."""
        texts = texts_of(self)
        text = texts("list.no_match", filter=self._filter) if self._filter else texts(self._empty)
        return wrap(sanitize(text), max(10, width - 2))

    def redraw_changed(self) -> None:
        """Draw the visible lines with a changed appearance again."""
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
        if below := self._count_below():
            parts.append(texts("list.more", count=below))
        titles = (self.title_text(texts(self._title)), " · ".join(parts))
        if titles != self._titles:
            self._titles = titles
            self.border_title = content(titles[0])
            self.border_subtitle = content(titles[1]) if parts else None

    def _count_below(self) -> int:
        """Return the number of items below the visible rows. Return 0 for a list with a fixed height, because
        its scrollbar shows this."""
        height = self.content_area.height
        if not self.styles.is_auto_height or not height:
            return 0
        index, _part = self._rows.item_at(int(self.scroll_offset.y) + height)
        return max(0, len(self._shown) - index)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._retitle()

    def title_text(self, title: str) -> str:
        """Return the current title."""
        return title

    @property
    def tab_text(self) -> str:
        """The name on the tab of this pane, shown if only one pane is visible."""
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
        """Make the line under the cursor visible with as little scrolling as possible."""
        top, height = self.scroll_offset.y, self.content_area.height
        if not height:
            return  # Not visible yet: `on_resize` calls this again.
        rows = self._rows.rows_of(self._cursor)
        if rows.start < top:
            self._scroll_to_line(rows.start)
        elif rows.stop > top + height:
            self._scroll_to_line(min(rows.start, rows.stop - height))

    def _scroll_to_line(self, y: int) -> None:
        # Forced, because a list that just became long gets its scrollbar in the next layout.
        self.scroll_to(y=y, animate=False, immediate=True, force=True)

    def on_resize(self) -> None:
        self._arrange()
        self._show_cursor()
        self._retitle()

    def on_focus(self) -> None:
        self._refresh_item(self._cursor)

    def on_blur(self) -> None:
        self._refresh_item(self._cursor)

    def _refresh_item(self, index: int) -> None:
        for row in self._rows.rows_of(index):
            self.refresh_line(row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether ``action`` is possible. An empty list has nothing to open or copy. A filter is
        possible, because the items may still be loading."""
        if action in ("open", "copy"):
            return self.item is not None
        return super().check_action(action, parameters)

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
        """The words of the filter, empty without a filter."""
        return self._filter

    def search_for(self, words: str) -> None:
        """Show only items that contain ``words``."""
        if words != self._filter:
            self.set_filter(words)

    def end_search(self) -> bool:
        """Remove the filter. Return False if there was no filter."""
        was_filtered = bool(self._filter)
        self.search_for("")
        return was_filtered

    def set_filter(self, text: str) -> None:
        """Show only items whose text contains ``text``."""
        self._forget_widths()
        self._filter = text
        self._held = None
        self._take(self._all)
        self._show_cursor()
        self.refresh()

    def age_of(self, row: Row | None) -> str:
        """Return the age of a row in the format of lists."""
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
