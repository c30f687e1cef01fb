"""Work that is deferred until after the first paint."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

from watchroom_tui.context import Dashboard, load_screen_class
from watchroom_tui.keys.actions import SCREENS

_SCREENS: Final = (*(name for _, name in SCREENS), "merge")
_AFTER_SECONDS: Final = 1.0
"""Seconds before screens are loaded. The workspace is usually open by then."""


def resume_collector() -> None:
    """Enable the garbage collector if it was disabled for the start.

    Existing objects are exempt from collection, because they live until the dashboard closes. Collecting all
    of them would take as long as opening a screen.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


async def load_screens(app: Dashboard) -> None:
    """Import the screens with content in advance, so that the first visit is as fast as later visits.

    Import the screens in a thread. After each import, pause for the duration of the import. Exempt all loaded
    objects from garbage collection.
    """
    await asyncio.sleep(_AFTER_SECONDS)
    # Both screens need large libraries, so skip them without content to save memory.
    is_wanted = {"documents": bool(app.model.documents), "boards": bool(app.model.boards)}
    for name in _SCREENS:
        if not is_wanted.get(name, True):
            continue
        start = time.monotonic()
        await asyncio.to_thread(load_screen_class, name)
        await asyncio.sleep(time.monotonic() - start)
    gc.freeze()
