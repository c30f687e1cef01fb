"""A lock between processes, with a short text."""

from __future__ import annotations

import errno
import logging
import os
from threading import Event, Lock, Thread
from typing import Final, Literal

from watchroom.errors import LocksUnsupported, WorkspaceLocked
from watchroom.platform import Platform

LOCK_SECONDS: Final = 10.0
"""Default timeout of a writer that waits for a lock, in seconds."""
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""The errors of file systems without locks between processes, such as some network file systems."""
_log = logging.getLogger("watchroom")


class ProcessLock:
    """A lock that one process of a machine holds at a time. The kernel releases it when the holder dies.

    The lock's file contains a short text, which only the holder may read and write. The lock is not
    re-entrant, and does not exclude threads of the same process.
    """

    def __init__(self, path: str, platform: Platform) -> None:
        self._path = path
        self._platform = platform
        self._fd = self._open()
        self._waiter: _LockWaiter | None = None

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def acquire(self, seconds: float = LOCK_SECONDS) -> None:
        """Take the lock. ``seconds``: timeout, default 10.

        If the lock's file was removed or replaced in the meantime, take the lock of the new file.

        Raise `WorkspaceLocked` with the name of the holder after the timeout. Raise `LocksUnsupported` if
        the file system has no locks, and FileNotFoundError if the file's folder was removed.
        """
        if self._waiter is None or not self._waiter.resume():
            self._waiter = None
            if self.try_acquire():
                return
            self._waiter = _LockWaiter(self._fd, self._platform)
        if not self._waiter.wait(seconds):
            # Keep the waiter, so that the next call keeps this place in the kernel's queue.
            raise WorkspaceLocked(seconds=round(seconds), holder=self.holder())
        self._waiter = None
        if not self._is_in_place():
            self._reopen()
            self.acquire(seconds)

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Return whether it was taken. Raise the errors of `acquire`."""
        try:
            while self._platform.try_lock(self._fd):
                if self._is_in_place():
                    return True
                self._reopen()
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise LocksUnsupported(path=self._path, reason=error.strerror) from error
            raise
        return False

    def _is_in_place(self) -> bool:
        """Return whether the open file is still at its path."""
        return os.fstat(self._fd).st_nlink > 0

    def _reopen(self) -> None:
        new = self._open()
        # This releases the lock of the old file.
        os.dup2(new, self._fd, inheritable=False)
        os.close(new)

    def release(self) -> None:
        """Release the lock. No error is raised, because the work under the lock is done."""
        try:
            self._platform.unlock(self._fd)
        except OSError:
            # Closing the descriptor also releases the lock.
            _log.exception("%s could not be unlocked, and is opened again", self._path)
            self._reopen()

    def holder(self) -> str:
        """Return the name and id of the process that holds the lock, ``-`` if unknown."""
        return self._platform.lock_holder(self._fd)

    def text(self) -> str:
        """Return the text of the last `set_text`, empty if there was none."""
        return os.pread(self._fd, 200, 0).decode("ascii", "replace").partition("\n")[0].rstrip()

    def set_text(self, text: str) -> None:
        """Write ``text`` into the lock's file: one line of at most 80 ASCII characters. Raise OSError."""
        os.pwrite(self._fd, text.ljust(80).encode("ascii") + b"\n", 0)

    def close(self) -> None:
        """Release the lock if it is held, and close its file."""
        if self._waiter is not None:
            self._waiter.abandon()
        os.close(self._fd)


class _LockWaiter:
    """A thread that waits in the kernel for a lock.

    The kernel serves waiting threads in order, but has no timeout for this call.
    """

    def __init__(self, fd: int, platform: Platform) -> None:
        self._platform = platform
        # The lock belongs to the opened file, not to the descriptor. This copy keeps it after a close.
        self._fd = os.dup(fd)
        self._state_lock = Lock()
        self._is_wanted = True
        self._state: Literal["waiting", "held", "given_up"] = "waiting"
        self._error: OSError | None = None
        self._ended = Event()
        Thread(target=self._run, name="watchroom-lock", daemon=True).start()

    def resume(self) -> bool:
        """Request the lock again after a timeout. Return False if it was obtained and released in the
        meantime."""
        with self._state_lock:
            self._is_wanted = True
            return self._state == "waiting"

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds``. Return whether the lock is held. Raise the OSError of the kernel."""
        self._ended.wait(seconds)
        with self._state_lock:
            if self._error is not None:
                raise self._error
            self._is_wanted = self._state == "held"
            return self._is_wanted

    def abandon(self) -> None:
        with self._state_lock:
            self._is_wanted = False

    def _run(self) -> None:
        try:
            self._platform.lock(self._fd)
        except OSError as error:
            self._error = error
        with self._state_lock:
            self._state = "held" if self._is_wanted else "given_up"
            if self._state == "given_up":
                self._platform.unlock(self._fd)
            os.close(self._fd)
            self._ended.set()
