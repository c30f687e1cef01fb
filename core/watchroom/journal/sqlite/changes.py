"""Waits for rows of any process: each append ends with a write to the journal's lock file.

On Linux the kernel's inotify tells of that within a millisecond, at no cost while nothing happens. Elsewhere
watchfiles does, somewhat later.
"""

from __future__ import annotations

import os
import select
import sys
from threading import Event, Lock, Thread
from typing import Final

from watchroom.journal.changes import LocalChanges
from watchroom.journal.protocol import Changes

_STEP_MS: Final = 10


def changes_of_file(path: str) -> Changes:
    """What wakes at each write to the lock file at ``path``. Where that cannot be made (its medium is
    read-only or full) nobody can append either, and looking now and then is enough."""
    if not _is_there(path):
        return LocalChanges()
    return _KernelChanges(path) if sys.platform.startswith("linux") else _WatchedChanges(path)


def _is_there(path: str) -> bool:
    if not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return False
    return True


class _KernelChanges:
    """Sleeps in the kernel on inotify's descriptor and on a pipe."""

    def __init__(self, path: str) -> None:
        from inotify_simple import INotify, flags

        self._inotify = INotify(nonblocking=True)
        self._inotify.add_watch(path, flags.MODIFY)
        self._open = Lock()
        self._is_open = True
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._poll = select.poll()
        for fd in (self._inotify.fileno(), self._reading):
            self._poll.register(fd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        for fd, _ in self._poll.poll(seconds * 1000):
            os.read(fd, 1 << 16)

    def wake(self) -> None:
        with self._open:
            if not self._is_open:
                return
            try:
                os.write(self._writing, b"!")
            except BlockingIOError:
                # The pipe is full of calls that were not answered yet: one more says nothing new.
                return

    def close(self) -> None:
        with self._open:
            if not self._is_open:
                return
            self._is_open = False
            self._inotify.close()
            os.close(self._reading)
            os.close(self._writing)


class _WatchedChanges(LocalChanges):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._folder, self._name = os.path.split(path)
        self._stopping = Event()
        self._thread = Thread(target=self._watch, name="watchroom-changes", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        from watchfiles import watch

        for _ in watch(
            self._folder,
            watch_filter=lambda _, path: os.path.basename(path) == self._name,
            debounce=_STEP_MS,
            step=_STEP_MS,
            stop_event=self._stopping,
            recursive=False,
        ):
            self.wake()

    def close(self) -> None:
        self._stopping.set()
        super().close()
        self._thread.join()
