"""Screens of other packages: entry points of the group ``watchroom.screens`` (docs/plugins.md).

A plug-in describes a table, and the dashboard draws it. So no plug-in can disturb a terminal, and its errors
are shown instead of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal
from watchroom.platform.plugins import OfferedPlugin, Plugins, load_plugins
from watchroom.texts import Language

from watchroom_tui.keys.actions import ACTIONS

ENTRY_POINT_GROUP: Final = "watchroom.screens"
KEYS: Final = tuple(f"f{number}" for number in range(1, 13))
"""The keys that a screen can ask for. Watchroom has no action with one of them."""
_MAX_TITLE: Final = 40


class ScreenTable(NamedTuple):
    """The content of a screen: the titles of the columns, and a text for each cell of each row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class ScreenPlugin(NamedTuple):
    """A screen of another package.

    - ``titles``: its title by language. ``en`` is required.
    - ``read``: returns its table for the shown moment. It is called in a thread, again after each change.
    - ``key``: the key that opens it, one of `KEYS`; default: none. The palette always opens it.
    """

    titles: Mapping[str, str]
    read: Callable[[Model, Journal], ScreenTable]
    key: str = ""

    def title(self, language: Language) -> str:
        """Return the title in ``language``, else in English."""
        return self.titles.get(language, self.titles["en"])


@cache
def plugin_screens() -> Plugins[ScreenPlugin]:
    """Return the screens of installed packages."""
    keys = {key: "Watchroom" for action in ACTIONS for key in action.keys}

    def check(offered: OfferedPlugin) -> ScreenPlugin:
        screen = offered.value
        if not isinstance(screen, ScreenPlugin):
            raise ValueError(f"{type(screen).__name__} is no ScreenPlugin")
        if not all(map(_is_title, [screen.titles.get("en"), *screen.titles.values()])):
            raise ValueError(
                f"the English title is missing, or a title is no text of 1 to {_MAX_TITLE} characters"
            )
        if screen.key and screen.key not in KEYS:
            raise ValueError(f"the key {screen.key!r} is none of f1 to f12")
        if screen.key in keys:
            raise ValueError(f"the key {screen.key} belongs to {keys[screen.key]}")
        if screen.key:
            keys[screen.key] = offered.package
        return screen

    return load_plugins(ENTRY_POINT_GROUP, check)


def _is_title(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= _MAX_TITLE
