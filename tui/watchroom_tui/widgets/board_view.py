"""A board's text with incremental search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

from textual import events

from watchroom_tui.actions import Scope, bindings
from watchroom_tui.localization import texts_of
from watchroom_tui.sanitize import sanitize
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.markdown_view import MarkdownView


class BoardTextView(MarkdownView):
    BINDINGS = bindings("board")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("board",)

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._sought = ""
        self._is_typing = False
        self._count: int | None = None

    def action_search(self) -> None:
        self._is_typing = True
        self._show_search()

    def action_match(self, step: int) -> None:
        if not self._sought:
            self.action_search()
        else:
            self.go_to_match(step)

    def end_search(self) -> bool:
        """Look for nothing any more; False if nothing was looked for."""
        if not (self._is_typing or self._sought):
            return False
        self._is_typing = False
        self._seek("")
        self._show_search()
        return True

    def _seek(self, sought: str) -> None:
        self._sought, self._count = sought, None
        self._show_search()
        work: Callable[[], Awaitable[None]] = partial(self._look_for, sought)
        self.run_worker(work, group="search", exclusive=True)

    async def _look_for(self, sought: str) -> None:
        count = await self.search(sought)
        if sought == self._sought:
            self._count = count
            self._show_search()
            if count:
                self.go_to_match(1)

    def _show_search(self) -> None:
        if not (self._is_typing or self._sought):
            self.border_subtitle = None
            return
        cursor = "▏" if self._is_typing else ""
        found = "" if self._count is None else texts_of(self)("boards.matches", count=self._count)
        self.border_subtitle = content(f"/{sanitize(self._sought)}{cursor} {found}".rstrip())

    def on_key(self, event: events.Key) -> None:
        if not self._is_typing:
            if event.character == "/":
                # At once, not through a binding: what is typed right after it belongs to the search.
                self.action_search()
                event.stop()
                event.prevent_default()
            return
        if event.key == "enter":
            self._is_typing = False
            self._show_search()
        elif event.key == "escape":
            self.end_search()
        elif event.key == "backspace":
            self._seek(self._sought[:-1])
        elif event.is_printable and event.character:
            self._seek(self._sought + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        if self._is_typing:
            self._is_typing = False
            self._show_search()
