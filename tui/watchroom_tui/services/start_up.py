"""Work after the first paint, so that the first paint does not wait for it."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

from watchroom_tui.context import Dashboard, load_screen_class
from watchroom_tui.keys.actions import SCREENS

_SCREENS: Final = (*(name for _, name in SCREENS), "merge")
_AFTER_SECONDS: Final = 1.0
"""Seconds before screens are loaded, because the workspace is usually open by then."""


def resume_collector() -> None:
    """Enable the garbage collector if it was disabled for the start.

    Objects that exist now are exempt, because they stay to the end, and a collection of all of them would
    take as long as opening a screen.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


async def load_screens(app: Dashboard) -> None:
    """Import the screens that have something to show, so that the first visit is as quick as the second.

    They are imported in a thread, with pauses as long as each import took, and are exempt from garbage
    collection.
    """
    await asyncio.sleep(_AFTER_SECONDS)
    # Both need large libraries, which take memory.
    is_wanted = {"documents": bool(app.model.documents), "boards": bool(app.model.boards)}
    for name in _SCREENS:
        if not is_wanted.get(name, True):
            continue
        start = time.monotonic()
        await asyncio.to_thread(load_screen_class, name)
        await asyncio.sleep(time.monotonic() - start)
    gc.freeze()
