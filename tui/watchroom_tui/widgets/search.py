"""Search a widget: the protocol, and the search bar of a screen, which is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from textual.screen import Screen
from textual.widget import Widget

if TYPE_CHECKING:
    from watchroom_tui.widgets.search_bar import SearchBar


class Searchable(Protocol):
    """A widget that filters by words, or finds them."""

    @property
    def sought(self) -> str:
        """The search words, empty without a search."""

    def search_for(self, words: str) -> None:
        """Search for ``words``."""

    def end_search(self) -> bool:
        """End the search. Return False if there was none."""


async def open_search(target: Searchable) -> None:
    """Focus the search bar of the screen of ``target``, a widget."""
    screen = cast("Widget", target).screen
    bar = _bar_of(screen)
    if bar is None:
        from watchroom_tui.widgets.search_bar import SearchBar

        bar = SearchBar()
        await screen.mount(bar)
    bar.open(target)


def close_search(screen: Screen[Any]) -> None:
    """Return the focus to the searched widget, which keeps its matches."""
    bar = _bar_of(screen)
    if bar is not None:
        bar.close()


def _bar_of(screen: Screen[Any]) -> SearchBar | None:
    found = screen.query("SearchBar")
    return cast("SearchBar", found.first()) if found else None
