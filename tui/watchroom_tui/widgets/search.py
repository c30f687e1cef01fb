"""Open the search bar of a screen, which is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen
from textual.widget import Widget

if TYPE_CHECKING:
    from watchroom_tui.widgets.search_bar import Searchable, SearchBar


async def open_search(target: Searchable) -> None:
    """Focus the search bar of the screen that contains the widget ``target``."""
    screen = cast("Widget", target).screen
    bar = _bar_of(screen)
    if bar is None:
        from watchroom_tui.widgets.search_bar import SearchBar

        bar = SearchBar()
        await screen.mount(bar)
    bar.open(target)


def close_search(screen: Screen[Any]) -> None:
    """Return the focus to the searched widget. The widget keeps its matches."""
    bar = _bar_of(screen)
    if bar is not None:
        bar.close()


def _bar_of(screen: Screen[Any]) -> SearchBar | None:
    found = screen.query("SearchBar")
    return cast("SearchBar", found.first()) if found else None
