"""Watches the folders of a workspace for external edits.

An event of the file system is only a hint: the file's content is compared with the journal. While agents
write a lot, most hints come from their own writes, so they are checked in batches.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from threading import Event, Lock, Thread
from typing import ClassVar, Final, Literal, TypeAlias

from watchroom.errors import WatchroomError
from watchroom.platform import Platform, TreeChanges, TreeWatch

WatchMode: TypeAlias = Literal["events", "polling"]
"""The way changes are noticed: by events of the operating system, or by checking the files periodically."""

_BATCH: Final = 50
"""Maximum number of files that are checked at once."""
_PAUSE_SECONDS: Final = 0.25
"""Seconds between two batches."""
_SCAN_SECONDS: Final = 300
"""Seconds between two comparisons of all files. Some changes are not reported, such as a mount."""
_SCAN_SHARE: Final = 5
"""Minimum wait between comparisons of all files after an overflow, as a multiple of the last comparison's
duration."""
_RETRY_SECONDS: Final = 30.0
"""Seconds until a failed watch is set up again."""
_MAX_DELAY_SECONDS: Final = 60.0
"""Maximum seconds of the delay after a failed comparison. The delay starts at one second, and is doubled each
time."""
_QUIET_SECONDS: Final = 0.1
"""Seconds without further changes after which the hints are checked."""
_LATEST_SECONDS: Final = 0.5
"""Maximum seconds from the first change to the check of the hints."""
_STEP_SECONDS: Final = 0.02
"""Seconds between two reads of events during a burst: each write of a program is an event."""
_LIBRARY_QUIET_MS: Final = 400
"""Milliseconds without further changes after which watchfiles reports changes."""
_LIBRARY_LATEST_MS: Final = 800
_log = logging.getLogger("watchroom")


class FileWatcher:
    """Records external edits on its own thread while there are subscribers. May be used from any thread.

    - ``folders``: absolute paths of the folders to watch. A missing folder is watched once it exists.
    - ``files``: absolute paths of files outside these folders.
    - ``check``: compares the given files with the journal.
    - ``scan``: compares all files with the journal.
    - ``platform``: watches folders. If it cannot, the library watchfiles is used.
    """

    POLL_SECONDS: ClassVar = 2
    """Seconds between two checks of the files in the mode ``polling``."""

    def __init__(
        self,
        folders: Sequence[str],
        files: Sequence[str],
        check: Callable[[Iterable[str]], object],
        scan: Callable[[], object],
        platform: Platform,
    ) -> None:
        self._folders = folders
        self._files = files
        self._check = check
        self._scan = scan
        self._platform = platform
        self._lock = Lock()
        self._comparing = Lock()
        self._subscribers: list[Callable[[WatchMode], object]] = []
        self._mode: WatchMode | None = None
        self._run = _Run()

    def subscribe(self, on_mode: Callable[[WatchMode], object] = lambda _: None) -> Callable[[], None]:
        """Record external edits until the returned function is called. ``on_mode`` is called with the mode as
        soon as it is known, and after each change of the mode."""

        # Two subscribers may pass the same function.
        def subscriber(mode: WatchMode) -> None:
            on_mode(mode)

        with self._lock:
            self._subscribers.append(subscriber)
            mode = self._mode
            if len(self._subscribers) == 1:
                self._run = _Run()
                Thread(target=self._work, args=(self._run,), name="watchroom-files", daemon=True).start()
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
            self._run.stop()
            self._mode = None
        with self._comparing:
            pass

    def _work(self, run: _Run) -> None:
        hints = _Hints()
        with closing(self._changes(run, hints)) as found:
            for changes in found:
                hints.add(changes)
                with self._comparing:
                    if run.stopping.is_set():
                        return
                    hints.compare(self._check, self._scan)

    def _changes(self, run: _Run, hints: _Hints) -> Generator[TreeChanges]:
        """Yield changes. When ``hints`` are due, also yield an object without changes."""
        try:
            yield from self._tree_changes(run, hints)
        except OSError as error:
            _log.warning("folders are not watched by the platform: %s", error)
        yield from self._library_changes(run.stopping)

    def _tree_changes(self, run: _Run, hints: _Hints) -> Iterator[TreeChanges]:
        """Yield the changes that the platform reports. Raise OSError if it has no watches left."""
        while not run.stopping.is_set():
            watch = self._platform.watch_tree(self._folders, self._files)
            if watch is None:
                return
            with closing(watch), run.woken_through(watch):
                folders = self._existing_folders()
                self._set_mode("events", run.stopping)
                changes = TreeChanges(set(), is_complete=False)
                # A mount is not reported, nor a changed target of a link above the folders.
                while changes.paths or not changes.is_complete or folders == self._existing_folders():
                    folders = self._existing_folders()
                    yield changes
                    changes = _gather(watch, hints.seconds(), run.stopping)

    def _library_changes(self, stopping: Event) -> Iterator[TreeChanges]:
        """Yield the changes that watchfiles reports, and ``files`` each second. Fall back to polling if the
        system has no watches left."""
        from watchfiles import watch

        mode: WatchMode = "events"
        while not stopping.is_set():
            folders = self._existing_folders()
            is_set_up = False
            try:
                for changes in watch(
                    *folders,
                    watch_filter=None,
                    debounce=_LIBRARY_LATEST_MS,
                    step=_LIBRARY_QUIET_MS,
                    rust_timeout=1000,
                    yield_on_timeout=True,
                    stop_event=stopping,
                    force_polling=True if mode == "polling" else None,
                    poll_delay_ms=self.POLL_SECONDS * 1000,
                ):
                    if not is_set_up:
                        self._set_mode(mode, stopping)
                    yield TreeChanges({path for _, path in changes}.union(self._files), is_set_up)
                    is_set_up = True
                    # The watch of a replaced or removed folder never reports anything again.
                    if not changes and self._existing_folders() != folders:
                        break
            except Exception as error:  # noqa: BLE001  # watchfiles raises classes that it does not export
                _log.warning("files are not watched by %s: %s", mode, error)
                if mode == "polling":
                    yield TreeChanges(set(), is_complete=False)
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


class _Run:
    """The run of a watcher's thread, while it has subscribers."""

    def __init__(self) -> None:
        self.stopping = Event()
        self._watch: TreeWatch | None = None

    def stop(self) -> None:
        self.stopping.set()
        watch = self._watch
        if watch is not None:
            watch.wake()

    @contextmanager
    def woken_through(self, watch: TreeWatch) -> Iterator[None]:
        """Make `stop` end a wait of ``watch``."""
        self._watch = watch
        try:
            yield
        finally:
            self._watch = None


class _Hints:
    """The files that may have changed, and the time of the next comparison of all files."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._next_scan = self._soonest_scan = time.monotonic()
        self._delay = 0.0

    def add(self, changes: TreeChanges) -> None:
        self._files |= changes.paths
        if not changes.is_complete:
            self._next_scan = min(self._next_scan, self._soonest_scan)

    def seconds(self) -> float:
        """Seconds until `compare` has something to do."""
        if self._delay:
            return self._delay
        until_scan = max(0.0, self._next_scan - time.monotonic())
        return min(until_scan, _PAUSE_SECONDS) if self._files else until_scan

    def compare(self, check: Callable[[Iterable[str]], object], scan: Callable[[], object]) -> None:
        """Compare all files if that is due, otherwise a batch of the files that may have changed. After an
        error, the next call compares the same files again."""
        began = time.monotonic()
        batch = set(islice(self._files, _BATCH))
        try:
            if began >= self._next_scan:
                scan()
                self._files.clear()
                ended = time.monotonic()
                self._next_scan = ended + _SCAN_SECONDS
                self._soonest_scan = ended + _SCAN_SHARE * (ended - began)
            elif batch:
                check(batch)
                self._files -= batch
            self._delay = 0.0
        except Exception as error:  # noqa: BLE001  # whatever fails, edits are recorded once it works again
            reason = error.message() if isinstance(error, WatchroomError) else repr(error)
            _log.warning("files could not be compared with the journal: %s", reason)
            self._delay = min(_MAX_DELAY_SECONDS, max(1.0, 2 * self._delay))


def _gather(watch: TreeWatch, seconds: float, stopping: Event) -> TreeChanges:
    """Wait at most ``seconds`` for a change. Return it together with changes that follow in quick
    succession."""
    watch.wait(seconds)
    paths, is_complete = watch.take()
    if not paths and is_complete:
        return TreeChanges(paths)
    deadline = time.monotonic() + _LATEST_SECONDS
    while not stopping.wait(_STEP_SECONDS):
        remaining = deadline - time.monotonic()
        watch.wait(max(0.0, min(_QUIET_SECONDS - _STEP_SECONDS, remaining)))
        more = watch.take()
        paths |= more.paths
        is_complete = is_complete and more.is_complete
        if remaining <= 0 or (not more.paths and more.is_complete):
            break
    return TreeChanges(paths, is_complete)
