"""`IndexLock`: tells whether git is changing files of a working tree, and waits for it."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Final

_LOCK_SECONDS: Final = 10.0
"""Seconds for which a lock counts as used, whether or not a process has it open."""
_POLL_SECONDS: Final = 0.005
_MOVE_SECONDS: Final = 0.05
"""Seconds after a write of the index in which git also moves HEAD."""
_INDEX: Final = "index"
_NAME: Final = "index.lock"
_PROCESSES: Final = "/proc"


class IndexLock:
    """The lock of the index in the git folder ``git``. May be used from any thread.

    Git creates it before it changes files of the tree, and has it open until it has written the index. A
    killed git leaves it behind.
    """

    def __init__(self, git: str) -> None:
        self._path = os.path.join(git, _NAME)
        self._index = os.path.join(git, _INDEX)
        self._left: tuple[int, int] | None = None
        """Inode and time of a lock that no process has open. Nobody opens it again."""
        self._found = ""
        """The entry of /proc for the lock, in the process that has it open."""

    def is_in_use(self) -> bool:
        """Return whether git is changing files or the index.

        True while a process has the lock open, and in the first ten seconds of each lock. Where open files
        are not known, namely without /proc or for processes of other users, a lock counts as left behind
        after these ten seconds.
        """
        try:
            lock = os.stat(self._path)
        except OSError:
            return False
        # After the clock was set back, the age is negative.
        if 0 <= time.time() - lock.st_mtime < _LOCK_SECONDS:
            return True
        stamp = (lock.st_ino, lock.st_mtime_ns)
        if stamp == self._left:
            return False
        if not _is_file(self._found, lock):
            self._found = _find_open(lock)
        if not self._found:
            self._left = stamp
        return bool(self._found)

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until git changes no files, and then until it has moved HEAD. Return
        whether git changes no files."""
        deadline = time.monotonic() + seconds
        while self.is_in_use():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        with contextlib.suppress(OSError):
            age = time.time() - os.stat(self._index).st_mtime
            if 0 <= age < _MOVE_SECONDS:
                time.sleep(_MOVE_SECONDS - age)
        return True


def _find_open(lock: os.stat_result) -> str:
    """Return the entry of /proc for the file ``lock`` in a process that has it open. Empty if no process has
    it open."""
    try:
        processes = [each for each in os.listdir(_PROCESSES) if each.isdecimal()]
    except OSError:
        return ""
    for process in processes:
        folder = os.path.join(_PROCESSES, process, "fd")
        try:
            entries = [os.path.join(folder, each) for each in os.listdir(folder)]
        except OSError:
            # It has ended, or belongs to somebody else.
            continue
        for entry in entries:
            if _is_file(entry, lock):
                return entry
    return ""


def _is_file(entry: str, lock: os.stat_result) -> bool:
    """Return whether ``entry`` of /proc is the open file ``lock``."""
    try:
        return os.readlink(entry).endswith(f"/{_NAME}") and os.path.samestat(os.stat(entry), lock)
    except OSError:
        return False
