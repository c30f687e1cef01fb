"""Waits for a version in the journal, whichever process makes it."""

from __future__ import annotations

import asyncio

from watchroom.model import Row, Zone
from watchroom.row_dispatcher import EVERY_ROW
from watchroom.runtime.threads import call_soon_threadsafe
from watchroom.workspace import Workspace


async def wait_for_version(workspace: Workspace, zone: Zone, path: str, version: int, seconds: float) -> bool:
    """Wait until ``path`` in ``zone`` of ``workspace`` is at ``version`` or a later one; returns False where
    it is not after so many ``seconds``."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def take(row: Row) -> None:
        if (row.zone, row.path) == (zone, path) and row.version is not None:
            call_soon_threadsafe(loop, changed.set)

    def is_there() -> bool:
        head = workspace.journal.head(zone, path)
        return head is not None and not head.deleted and (head.version or 0) >= version

    end = workspace.dispatcher.subscribe((EVERY_ROW,), take)
    try:
        async with asyncio.timeout(seconds):
            while not is_there():
                changed.clear()
                await changed.wait()
        return True
    except TimeoutError:
        return False
    finally:
        end()
