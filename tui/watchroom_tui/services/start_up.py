"""What follows the first paint, so that it does not wait: the garbage collector, and the other screens."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

from watchroom_tui.context import Dashboard, load_screen_class
from watchroom_tui.keys.actions import SCREENS

_SCREENS: Final = (*(name for _, name in SCREENS), "merge")
_AFTER_SECONDS: Final = 1.0
"""By then the workspace is mostly open."""


def resume_collector() -> None:
    """Have the garbage collector look again, where it was paused for the start: but not through what was made
    since, which stays to the end. To look through all of it would take as long as to open a screen."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


async def load_screens(app: Dashboard) -> None:
    """Load the modules of the screens that have something to show in ``app``, in a thread and with pauses as
    long as each took, so that the first visit is as quick as the second; and exempt them from garbage
    collection."""
    await asyncio.sleep(_AFTER_SECONDS)
    # These two need large libraries, which take memory.
    is_wanted = {"documents": bool(app.model.documents), "boards": bool(app.model.boards)}
    for name in _SCREENS:
        if not is_wanted.get(name, True):
            continue
        start = time.monotonic()
        await asyncio.to_thread(load_screen_class, name)
        await asyncio.sleep(time.monotonic() - start)
    gc.freeze()
