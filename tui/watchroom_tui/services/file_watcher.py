"""Notices that someone changed the workspace's files by other means than the toolbox.

What the file system says is only a hint: it is followed by a comparison of contents. While agents write
a lot, their own writes give most of the hints, so only so many are looked into at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from watchroom.errors import WatchroomError

if TYPE_CHECKING:
    from watchroom import Workspace

_MOST_AT_ONCE: Final = 50
_PAUSE: Final = 0.25
_SCAN_SECONDS: Final = 300
_QUIET_MS: Final = 400
"""After so long without another change the hints are looked into. So often the watcher wakes at rest, too."""
_LATEST_MS: Final = 800
_log = logging.getLogger("watchroom")


class FileWatcher:
    """Watches the tree of ``workspace`` from `start` to `stop`, and has it compare what was touched."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stopping = Event()
        self._comparing = Lock()
        self._thread = Thread(target=self._run, name="watchroom-hints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Compare nothing any more; the thread, which may sleep yet, ends by itself."""
        self._stopping.set()
        with self._comparing:
            pass

    def _run(self) -> None:
        pending: set[str] = set()
        # What was written between the scan at open and the first hint gave none.
        next_scan = time.monotonic()
        for touched in self._touched():
            # Single files lie among others that nobody should watch: they are looked at with every hint.
            pending |= touched | set(self._workspace.watched_files)
            now, later = set(list(pending)[:_MOST_AT_ONCE]), set(list(pending)[_MOST_AT_ONCE:])
            with self._comparing:
                if self._stopping.is_set():
                    return
                try:
                    if now:
                        self._workspace.check(now)
                    pending = later
                    if not touched and time.monotonic() >= next_scan:
                        # Later on, the queue of hints may have overflowed without a word.
                        self._workspace.scan()
                        next_scan = time.monotonic() + _SCAN_SECONDS
                except Exception as error:  # noqa: BLE001  # the next hint looks at what was touched
                    reason = error.message() if isinstance(error, WatchroomError) else repr(error)
                    _log.warning("external edits are not looked for: %s", reason)
            if pending and self._stopping.wait(_PAUSE):
                return

    def _touched(self) -> Iterator[set[str]]:
        from watchfiles import watch

        for changes in watch(
            *self._workspace.watched_folders,
            watch_filter=None,
            debounce=_LATEST_MS,
            step=_QUIET_MS,
            rust_timeout=1000,
            yield_on_timeout=True,
            stop_event=self._stopping,
        ):
            yield {path for _, path in changes}
