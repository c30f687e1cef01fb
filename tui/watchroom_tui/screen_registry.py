"""The screens by name, loaded when they are first shown.

A screen is a folder beneath `watchroom_tui.screens`: ``files`` has ``screen.py`` with ``FilesScreen``,
and its styles in ``files.tcss``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from textual.screen import Screen

from watchroom_tui.actions import SCREENS

FOLDERS: Final = (*(name for _, name in SCREENS), "merge", "compare")
"""All screens: those with a number key, the merge, which a conflict leads to, and the comparison of two
moments."""

STYLESHEETS: Final = tuple(f"screens/{name}/{name}.tcss" for name in FOLDERS)


def load_screen_class(name: str) -> Callable[..., Screen[None]]:
    """The class of the screen ``name``, one of `FOLDERS`. Raises ImportError if there is no such screen."""
    module = import_module(f"watchroom_tui.screens.{name}.screen")
    found: type[Screen[None]] = getattr(module, f"{name.capitalize()}Screen")
    return found
