"""Follows the journal for all who wait for something in it, by one subscription of the dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from watchroom.model import Row, Zone
from watchroom.row_dispatcher import EVERY_ROW
from watchroom.runtime.threads import call_soon_threadsafe
from watchroom.workspace import Workspace

_Key = tuple[str, str]


class JournalFollower:
    """Lets coroutines of the running event loop wait for versions in ``workspace``, whichever process makes
    them."""

    def __init__(self, workspace: Workspace) -> None:
        self._journal = workspace.journal
        self._dispatcher = workspace.dispatcher
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[_Key, asyncio.Event] = {}
        self._end: Callable[[], None] | None = None

    async def wait_for(self, zone: Zone, path: str, version: int, seconds: float) -> bool:
        """Wait until ``path`` in ``zone`` is at ``version`` or a later one; False where it is not after so
        many ``seconds``."""
        if self._end is None:
            self._end = self._dispatcher.subscribe((EVERY_ROW,), self._take)
        changed = self._waiting.setdefault((zone, path), asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                while not self._is_there(zone, path, version):
                    changed.clear()
                    await changed.wait()
                return True
        except TimeoutError:
            return False

    def close(self) -> None:
        """End the subscription."""
        if self._end is not None:
            self._end()
            self._end = None

    def _is_there(self, zone: Zone, path: str, version: int) -> bool:
        head = self._journal.head(zone, path)
        return head is not None and not head.deleted and (head.version or 0) >= version

    def _take(self, row: Row) -> None:
        """On the dispatcher's thread."""
        changed = self._waiting.get((row.zone, row.path))
        if changed is not None and row.version is not None:
            call_soon_threadsafe(self._loop, changed.set)
