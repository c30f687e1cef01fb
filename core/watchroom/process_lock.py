"""A lock between processes, which a short text goes with."""

from __future__ import annotations

import errno
import logging
import os
from threading import Event, Lock, Thread
from typing import Final, Literal

from watchroom.errors import WorkspaceLocked
from watchroom.platforms import Platform
from watchroom.platforms.errors import LocksUnsupported

LOCK_SECONDS: Final = 10.0
"""How long a writer waits for a lock before it says who holds it."""
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What a file system without locks between processes answers, such as some on a network."""
_log = logging.getLogger("watchroom")


class ProcessLock:
    """Held by one process of a machine at a time, and let go by the kernel when its holder dies.

    The lock's file carries a short text that only the holder reads and writes. Not re-entrant, not for
    threads.
    """

    def __init__(self, path: str, platform: Platform) -> None:
        self._path = path
        self._platform = platform
        self._fd = self._open()
        self._waiter: _LockWaiter | None = None

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def acquire(self, seconds: float = LOCK_SECONDS) -> None:
        """Wait for the lock, at most ``seconds``.

        If the lock's file was removed or replaced meanwhile, take the lock of the file that is there now.
        Raises `WorkspaceLocked`, which names its holder, `LocksUnsupported` if the file system has no locks,
        and FileNotFoundError if its folder is gone.
        """
        self._acquire(seconds)
        while not self._is_in_place():
            self._reopen()
            self._acquire(seconds)

    def _acquire(self, seconds: float) -> None:
        if self._waiter is None or not self._waiter.resume():
            self._waiter = None
            if self._try_acquire():
                return
            self._waiter = _LockWaiter(self._fd, self._platform)
        if not self._waiter.wait(seconds):
            # It goes on waiting, so that the next call keeps this one's place among those who wait.
            raise WorkspaceLocked(seconds=round(seconds), holder=self.holder())
        self._waiter = None

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it; whether it was taken. Raises `LocksUnsupported`, and
        FileNotFoundError if its folder is gone."""
        while self._try_acquire():
            if self._is_in_place():
                return True
            self._reopen()
        return False

    def _try_acquire(self) -> bool:
        try:
            return self._platform.try_lock(self._fd)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise LocksUnsupported(path=self._path, reason=error.strerror) from error
            raise

    def _is_in_place(self) -> bool:
        """Whether the file that is open was neither removed nor replaced."""
        return os.fstat(self._fd).st_nlink > 0

    def _reopen(self) -> None:
        new = self._open()
        # This lets go of the lock of the file that was open.
        os.dup2(new, self._fd, inheritable=False)
        os.close(new)

    def release(self) -> None:
        """Let others have it. Raises nothing: what was done under the lock is done."""
        try:
            self._platform.unlock(self._fd)
        except OSError:
            # The kernel lets go of it with the descriptor.
            _log.exception("%s could not be unlocked, and is opened anew", self._path)
            self._reopen()

    def holder(self) -> str:
        """Which process has the lock: its name and number, ``-`` where that cannot be told."""
        return self._platform.lock_holder(self._fd)

    def text(self) -> str:
        """What `set_text` wrote last, empty if nothing."""
        return os.pread(self._fd, 200, 0).decode("ascii", "replace").partition("\n")[0].rstrip()

    def set_text(self, text: str) -> None:
        """Write ``text``, one line of at most 80 ASCII characters, into the lock's file. Raises OSError."""
        os.pwrite(self._fd, text.ljust(80).encode("ascii") + b"\n", 0)

    def close(self) -> None:
        """Let go of the lock, if it is held, and of its file."""
        if self._waiter is not None:
            self._waiter.abandon()
        os.close(self._fd)


class _LockWaiter:
    """A thread that sleeps in the kernel until a lock is free: the kernel serves those who wait in turn,
    but knows no time-out."""

    def __init__(self, fd: int, platform: Platform) -> None:
        self._platform = platform
        # The lock belongs to what was opened, whichever number names it; this number outlives a close.
        self._fd = os.dup(fd)
        self._turn = Lock()
        self._is_wanted = True
        self._state: Literal["waiting", "held", "given_up"] = "waiting"
        self._error: OSError | None = None
        self._ended = Event()
        Thread(target=self._run, name="watchroom-lock", daemon=True).start()

    def resume(self) -> bool:
        """Want the lock again after a `wait` in vain; False if it came and was given up meanwhile."""
        with self._turn:
            self._is_wanted = True
            return self._state == "waiting"

    def wait(self, seconds: float) -> bool:
        """Whether the lock is held after at most so many seconds. Raises OSError where the kernel refused."""
        self._ended.wait(seconds)
        with self._turn:
            if self._error is not None:
                raise self._error
            self._is_wanted = self._state == "held"
            return self._is_wanted

    def abandon(self) -> None:
        with self._turn:
            self._is_wanted = False

    def _run(self) -> None:
        try:
            self._platform.lock(self._fd)
        except OSError as error:
            self._error = error
        with self._turn:
            self._state = "held" if self._is_wanted else "given_up"
            if self._state == "given_up":
                self._platform.unlock(self._fd)
            os.close(self._fd)
            self._ended.set()
