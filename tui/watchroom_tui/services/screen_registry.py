"""The screens by name, imported when they are first shown.

A screen is a folder below `watchroom_tui.screens`: ``files`` has ``screen.py`` with ``FilesScreen``, whose
``CSS_PATH`` names its styles, ``files.tcss``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from textual.screen import Screen


def load_screen_class(name: str) -> Callable[..., Screen[None]]:
    """Return the class of the screen ``name``, which is its folder's name. Raises ImportError if there is no
    such screen."""
    module = import_module(f"watchroom_tui.screens.{name}.screen")
    found: type[Screen[None]] = getattr(module, f"{name.capitalize()}Screen")
    return found
