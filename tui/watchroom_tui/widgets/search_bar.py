"""The line to type a filter or a search, in place of the footer."""

from __future__ import annotations

from typing import ClassVar, Protocol, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from watchroom_tui.context import dashboard_of
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.keys.keymap import key_hints
from watchroom_tui.textual_compat import require
from watchroom_tui.widgets.line_widget import content

require(Input, "_on_key")


class Searchable(Protocol):
    """A widget that filters its items by words, or finds words."""

    @property
    def sought(self) -> str:
        """The search words, empty without a search."""

    def search_for(self, words: str) -> None:
        """Search for ``words``."""

    def end_search(self) -> bool:
        """End the search. Return False if there was no search."""


class SearchInput(Input):
    """Input that passes its text to the searched widget on each key."""

    BINDINGS = bindings("search")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("search",)
    target: Searchable | None = None

    def __init__(self) -> None:
        super().__init__(classes="editor", compact=True, select_on_focus=False)

    async def _on_key(self, event: events.Key) -> None:
        # Handled here, because bindings run after keys that were typed immediately afterwards.
        if self.target is None:
            # The bar was closed, so this key belongs to the focused widget.
            event.stop()
            event.prevent_default()
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key in ("enter", "escape"):
            event.stop()
            event.prevent_default()
            self.action_keep() if event.key == "enter" else self.action_clear()
        else:
            await super()._on_key(event)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.target is not None:
            self.target.search_for(event.value)

    def action_keep(self) -> None:
        target, self.target = self.target, None
        if target is None:
            return
        target.search_for(self.value)
        cast("Widget", self.parent).display = False
        if self.has_focus:
            self.screen.set_focus(cast("Widget", target))

    def action_clear(self) -> None:
        target = self.target
        self.value = ""
        self.action_keep()
        if target is not None:
            target.end_search()

    def on_blur(self) -> None:
        self.action_keep()


class SearchBar(Horizontal):
    """The search input, and the keys that end the search."""

    def compose(self) -> ComposeResult:
        dashboard, typed = dashboard_of(self), SearchInput()
        keys = key_hints(typed, dashboard.texts, dashboard.keymap, "search")
        yield Static(content("/"), classes="prompt")
        yield typed
        yield Static(content(keys), classes="keys")

    def open(self, target: Searchable) -> None:
        """Edit the search of ``target``."""
        typed = self.query_one(SearchInput)
        typed.target = target
        with typed.prevent(Input.Changed):
            typed.value = target.sought
        typed.cursor_position = len(typed.value)
        self.display = True
        self.screen.set_focus(typed)

    def close(self) -> None:
        """Close the bar, keep the search, and return the focus."""
        self.query_one(SearchInput).action_keep()
