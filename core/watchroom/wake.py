"""Wakes the feed when someone commits: this process by a call, another one by a change of a file.

Every commit of every process ends with a write to the workspace's lock file, after its rows can be read. On
Linux the kernel's inotify tells of that within a millisecond, at no cost while nothing happens. Elsewhere
watchfiles does, somewhat later.
"""

from __future__ import annotations

import os
import select
import sys
from threading import Event, Lock, Thread
from typing import Final, Protocol

LOCK_NAME: Final = "lock"
_STEP_MS: Final = 10

BACKSTOP_SECONDS: Final = 5.0
"""Whoever waits looks anyway after so long: file systems over a network tell nothing."""


class Waker(Protocol):
    def wait(self, seconds: float) -> None:
        """Until there may be something new, or so long."""
        ...

    def wake(self) -> None:
        """End the wait. May be called from any thread."""
        ...

    def close(self) -> None: ...


def waker(control: str | None) -> Waker:
    """A waker for the workspace whose control folder is ``control``; None: only `wake` wakes it."""
    if control is None:
        return _CalledWaker()
    if not _make_lock_file(os.path.join(control, LOCK_NAME)):
        # Nobody can commit here either: looking now and then is enough.
        return _CalledWaker()
    on_linux = sys.platform.startswith("linux")
    return _KernelWaker(os.path.join(control, LOCK_NAME)) if on_linux else _WatchingWaker(control)


def _make_lock_file(path: str) -> bool:
    """Whether the file is there: as soon as anybody opened the workspace it is, but a journal that is only
    read may lack it, and its medium may be read-only or full."""
    if not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return False
    return True


class _CalledWaker:
    def __init__(self) -> None:
        self._woken = Event()

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._woken.set()


class _KernelWaker:
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
            self._is_open = False
            self._inotify.close()
            os.close(self._reading)
            os.close(self._writing)


class _WatchingWaker(_CalledWaker):
    def __init__(self, control: str) -> None:
        super().__init__()
        self._control = control
        self._stopping = Event()
        self._thread = Thread(target=self._watch, name="watchroom-watch", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        from watchfiles import watch

        for _ in watch(
            self._control,
            watch_filter=lambda _, path: os.path.basename(path) == LOCK_NAME,
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
