"""The base of scrollable, searchable widgets that draw their own lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from textual.scroll_view import ScrollView

from watchroom_tui.keys.actions import VIEW_BINDINGS
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.line_widget import LineWidget, content
from watchroom_tui.widgets.search import open_search

MAX_COPIED: Final = 100_000
"""Max characters to copy, because terminals accept little more."""

SEARCH_ACTIONS: Final = ("search", "match", "copy")


class ScrollableWidget(LineWidget, ScrollView, can_focus=True):
    """Scrolls without animation, so that the next frame shows the answer to a key."""

    BINDINGS = VIEW_BINDINGS

    IS_SEARCHABLE = False
    """Whether the text can be searched and copied."""

    _sought = ""
    _shown_foot = ""
    _match_count: int | None = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in SEARCH_ACTIONS and not self.IS_SEARCHABLE:
            return False
        if action == "match" and not self._sought:
            return False
        return super().check_action(action, parameters)

    def action_scroll_by(self, lines: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)

    def action_scroll_pages(self, pages: int) -> None:
        self.action_scroll_by(pages * max(1, self.content_area.height - 1))

    def action_scroll_sideways(self, cells: int) -> None:
        # Forced, so that it also works without a scrollbar.
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True, force=True)

    def action_scroll_to_end(self, end: int) -> None:
        self.scroll_to(y=self.virtual_size.height if end else 0, animate=False, immediate=True)

    # -- search

    @property
    def sought(self) -> str:
        """The search words, empty without a search."""
        return self._sought

    async def action_search(self) -> None:
        await open_search(self)

    def action_match(self, step: int) -> None:
        self.go_to_match(step)

    def search_for(self, words: str) -> None:
        """Mark ``words``, and go to the first match from here on."""
        if words != self._sought:
            self._seek(words, is_new=True)

    def end_search(self) -> bool:
        """End the search. Return False if there was none."""
        was_sought = bool(self._sought)
        self.search_for("")
        return was_sought

    def renew_search(self) -> None:
        """Search the current content for the same words, without moving."""
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
        return 0

    def go_to_match(self, step: int) -> bool:
        """Show the next match (-1: the previous one), and wrap around. Return False if there is none."""
        return False

    def foot(self) -> str:
        """Return the text in the lower frame when there is no search."""
        return ""

    def _show_foot(self) -> None:
        text = self.foot()
        if self._sought:
            text = f"/{sanitize(self._sought)}"
            if self._match_count is not None:
                text += " · " + texts_of(self)("view.matches", count=self._match_count)
        if text != self._shown_foot:
            self._shown_foot = text
            self.border_subtitle = content(text) if text else None

    # -- copy

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
        """Return the text to copy (of a long text at least ``MAX_COPIED`` characters), and its number of
        lines."""
        return "", 0
