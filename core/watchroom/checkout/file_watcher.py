"""Watches the folders of a workspace for external edits.

An event of the file system is only a hint: the file's content is compared with the journal. While agents
write a lot, most hints come from their own writes, so they are checked in batches.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event, Lock, Thread
from typing import ClassVar, Final, Literal, TypeAlias

from watchroom.errors import WatchroomError

WatchMode: TypeAlias = Literal["events", "polling"]
"""How changes are noticed: by events of the operating system, or by looking at the files periodically."""

_BATCH: Final = 50
"""Maximum number of files that are checked at once."""
_PAUSE_SECONDS: Final = 0.25
"""Seconds between two batches."""
_SCAN_SECONDS: Final = 300
"""Seconds between two comparisons of all files: the system's queue of events can overflow silently."""
_RETRY_SECONDS: Final = 30.0
"""Seconds until a failed watch is set up again."""
_QUIET_MS: Final = 400
"""Milliseconds without another change after which the hints are checked."""
_LATEST_MS: Final = 800
_log = logging.getLogger("watchroom")


class FileWatcher:
    """Records external edits while anybody is subscribed, on one thread. May be used from any thread.

    - ``folders``: absolute paths of the folders to watch. One that is missing is watched once it exists.
    - ``files``: absolute paths of files outside these folders, which are checked with every hint.
    - ``check``: compares the given files with the journal.
    - ``scan``: compares all files with the journal.
    """

    POLL_SECONDS: ClassVar = 2
    """Seconds between two looks at the files in the mode ``polling``."""

    def __init__(
        self,
        folders: Sequence[str],
        files: Sequence[str],
        check: Callable[[Iterable[str]], object],
        scan: Callable[[], object],
    ) -> None:
        self._folders = folders
        self._files = files
        self._check = check
        self._scan = scan
        self._lock = Lock()
        self._comparing = Lock()
        self._subscribers: list[Callable[[WatchMode], object]] = []
        self._mode: WatchMode | None = None
        self._stopping = Event()

    def subscribe(self, on_mode: Callable[[WatchMode], object] = lambda _: None) -> Callable[[], None]:
        """Record external edits until the returned function is called. ``on_mode`` is called with the mode
        as soon as it is known and after each change of it."""

        # Two subscribers may give one function.
        def subscriber(mode: WatchMode) -> None:
            on_mode(mode)

        with self._lock:
            self._subscribers.append(subscriber)
            mode = self._mode
            if len(self._subscribers) == 1:
                self._stopping = Event()
                Thread(target=self._run, args=(self._stopping,), name="watchroom-files", daemon=True).start()
        if mode is not None:
            on_mode(mode)

        def end() -> None:
            with self._lock:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)
                is_last = not self._subscribers
            if is_last:
                self.close()

        return end

    def close(self) -> None:
        """End all subscriptions. Nothing is compared afterwards; the thread ends within a second."""
        with self._lock:
            self._subscribers.clear()
            self._stopping.set()
            self._mode = None
        with self._comparing:
            pass

    def _run(self, stopping: Event) -> None:
        pending: set[str] = set()
        next_scan = time.monotonic()
        for touched in self._touched(stopping):
            if touched is None:
                next_scan = time.monotonic()
            else:
                pending.update(touched, self._files)
            now, later = set(list(pending)[:_BATCH]), set(list(pending)[_BATCH:])
            with self._comparing:
                if stopping.is_set():
                    return
                try:
                    if now:
                        self._check(now)
                    pending = later
                    if not touched and time.monotonic() >= next_scan:
                        self._scan()
                        next_scan = time.monotonic() + _SCAN_SECONDS
                except Exception as error:  # noqa: BLE001  # the next hint checks the same files again
                    reason = error.message() if isinstance(error, WatchroomError) else repr(error)
                    _log.warning("files could not be compared with the journal: %s", reason)
            if pending and stopping.wait(_PAUSE_SECONDS):
                return

    def _touched(self, stopping: Event) -> Iterator[set[str] | None]:
        """Yield the files that changed, an empty set after a second without a change, and None if any file
        may have changed unnoticed. Fall back to polling if the system has no watches left."""
        from watchfiles import watch

        mode: WatchMode = "events"
        while not stopping.is_set():
            folders = self._existing_folders()
            is_set_up = False
            try:
                for changes in watch(
                    *folders,
                    watch_filter=None,
                    debounce=_LATEST_MS,
                    step=_QUIET_MS,
                    rust_timeout=1000,
                    yield_on_timeout=True,
                    stop_event=stopping,
                    force_polling=True if mode == "polling" else None,
                    poll_delay_ms=self.POLL_SECONDS * 1000,
                ):
                    if not is_set_up:
                        is_set_up = True
                        self._set_mode(mode, stopping)
                        yield None
                    yield {path for _, path in changes}
                    # The watch of a folder that was replaced or removed never reports anything again.
                    if not changes and self._existing_folders() != folders:
                        break
            except Exception as error:  # noqa: BLE001  # watchfiles raises classes that it does not export
                _log.warning("files are not watched by %s: %s", mode, error)
                if mode == "polling":
                    yield None
                    stopping.wait(_RETRY_SECONDS)
                mode = "polling"

    def _existing_folders(self) -> dict[str, tuple[int, int]]:
        """The identity (device, inode) of each folder that exists, by its path."""
        found = {}
        for folder in self._folders:
            try:
                known = os.stat(folder)
            except OSError:
                continue
            found[folder] = known.st_dev, known.st_ino
        return found

    def _set_mode(self, mode: WatchMode, stopping: Event) -> None:
        with self._lock:
            if stopping.is_set() or mode == self._mode:
                return
            self._mode = mode
            subscribers = tuple(self._subscribers)
        for on_mode in subscribers:
            try:
                on_mode(mode)
            except Exception:  # noqa: BLE001  # one subscriber must not affect the others
                _log.exception("a subscriber to the file watcher failed")
