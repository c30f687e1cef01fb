"""The list of all rows. Older rows are loaded page by page."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import Final

from textual.message import Message
from watchroom.features.overview.edit_rows import NEAR as NEAR_ROWS
from watchroom.features.overview.edit_rows import without_repeats
from watchroom.kernel.journal import RowFilter
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.widgets.row_list import RowList

NEAR: Final = 100
"""Distance in rows to the last loaded row at which the next page is requested."""

KEPT: Final = 10_000
"""Number of rows that are kept when new rows arrive and more than twice as many are loaded. Older rows are
read again on demand."""


class PagedRowList(RowList):
    PAGE: Final = 1000

    class PageRequested(Message):
        """Requests the rows with seq < ``before`` that pass ``only``. Answer with `add_older`."""

        def __init__(self, before: int, only: RowFilter) -> None:
            super().__init__()
            self.before = before
            self.only = only

    _only = RowFilter(steps=False)
    _loaded: Sequence[Row] = ()
    _newest = 0
    _oldest = 0
    _asked: PageRequested | None = None
    _complete = False
    _label = ""
    _wanted = 0
    """The row to which the cursor moves when it is loaded, 0 for none."""

    def show_newest(self, recent: Sequence[Row]) -> None:
        """Add new rows at the top. ``recent``: the newest rows, newest first."""
        if self._newest > (recent[0].seq if recent else 0) and not dashboard_of(self).is_live:
            # An earlier moment was chosen. In live mode, loaded rows may be newer than the model's.
            self._newest = 0
            self._loaded = ()
            self.show(())
            self._restart()
            return
        if not recent or recent[0].seq <= self._newest:
            self.redraw_changed()
            return
        if not self._newest or recent[-1].seq > self._newest + 1:
            # A filter may hide this row from the page, which has all rows up to it.
            self._newest = recent[0].seq
            self._restart()
            return
        new = [row for row in recent if row.seq > self._newest and self._only.admits(row)]
        self._newest = recent[0].seq
        if new:
            self._loaded = [*self._folded([*new, *self._loaded[:NEAR_ROWS]]), *self._loaded[NEAR_ROWS:]]
            if len(self._loaded) > 2 * KEPT and not self._is_away_from_top():
                self._loaded = self._loaded[:KEPT]
                self._oldest = self._loaded[-1].seq
                self._complete = False
            self.show(self._loaded)

    def show_only(self, only: RowFilter, label: str) -> None:
        """Show only rows that pass ``only`` and the typed filter. ``label`` is shown in the title."""
        self._only = only._replace(text=self._only.text)
        self._label = label
        self._restart()

    def set_filter(self, text: str) -> None:
        self._filter = text
        self._only = self._only._replace(text=text or None)
        self._restart()

    def _filtered(self, items: Sequence[Row]) -> Sequence[Row]:
        # The journal has already filtered.
        return items

    def add_older(self, request: PageRequested, rows: Sequence[Row]) -> None:
        """Add ``rows``, the answer to ``request``. Late answers to other requests are dropped."""
        if request is not self._asked:
            return
        self._asked = None
        self._complete = len(rows) < self.PAGE
        self._oldest = rows[-1].seq if rows else 0
        if request.before == sys.maxsize:
            self._forget_widths()
            last = rows[0].seq if rows else 0
            self._newest = max(self._newest, last)
            # Rows that arrived after the page was read.
            newer = takewhile(lambda row: row.seq > last, self._loaded)
            rows = self._folded([*filter(self._only.admits, newer), *rows])
            self._loaded = rows
            self._cursor = 0
            self._held = None
        else:
            rows = self._folded(rows)
            self._loaded = [*self._loaded, *rows]
        self._all = self._loaded
        if self._held is None:
            self._take(self._loaded)
        else:
            self._held = self._loaded
            self._take([*self._shown, *rows])
        self.refresh()
        if self._wanted:
            self.move_to(self._wanted)

    @property
    def is_seeking(self) -> bool:
        """Whether the row to which the cursor moves is not loaded yet."""
        return bool(self._wanted)

    def move_to(self, key: Hashable) -> bool:
        """Move the cursor to the row ``key``, once it is loaded. Return False if it is not loaded yet.

        Drop the keys that were typed ahead for the row if it does not exist.
        """
        # The first page replaces all rows, and with them the cursor.
        is_replaced = self._asked is not None and self._asked.before == sys.maxsize
        if super().move_to(key) and not is_replaced:
            return True
        if not isinstance(key, int):
            return False
        if not self._may_load(key):
            self._give_up()
            return False
        self._wanted = key
        if self._loaded and self._asked is None:
            self._ask(self._oldest)
        return False

    def _may_load(self, key: int) -> bool:
        """Return whether a page that is not loaded yet may have the row ``key``."""
        if self._asked is not None:
            return key < self._asked.before
        return not self._complete and (not self._loaded or key < self._oldest)

    def forget(self, request: PageRequested) -> None:
        """Forget ``request``, which could not be answered. The next model repeats a request for the first
        page, and the next movement another one."""
        if request is self._asked:
            self._asked = None
            if request.before == sys.maxsize:
                self._newest, self._loaded = 0, ()
            if self._wanted:
                self._give_up()

    def _give_up(self) -> None:
        """Stop to look for the row to which the cursor moves."""
        self._wanted = 0
        dashboard_of(self).drop_keys()

    def title_text(self, title: str) -> str:
        return f"{title} · {self._label}" if self._label else title

    def _restart(self) -> None:
        self._complete = False
        self._ask(sys.maxsize)
        self._retitle()

    def _move_cursor(self, index: int) -> None:
        self._wanted = 0
        super()._move_cursor(index)
        self._ask_when_near()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._ask_when_near()

    def _ask_when_near(self) -> None:
        if self._complete or self._asked is not None or not self._loaded:
            return
        bottom = max(self._cursor, self.scroll_offset.y + self.content_area.height)
        if bottom + NEAR >= len(self._loaded):
            self._ask(self._oldest)

    def _folded(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return ``rows`` with one row for each edit, or all rows if steps are shown."""
        return rows if self._only.steps else without_repeats(rows)

    def _ask(self, before: int) -> None:
        self._asked = self.PageRequested(before, self._only)
        self.post_message(self._asked)
