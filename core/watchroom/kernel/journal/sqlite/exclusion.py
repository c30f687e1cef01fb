"""Keyed locks between the processes of one machine: one file for each key. The kernel unlocks the file if its
holder dies."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

from watchroom.errors import JournalError, WorkspaceLocked
from watchroom.platform import Platform
from watchroom.platform.keyed_lock import KeyedLock
from watchroom.platform.process_lock import LOCK_SECONDS, ProcessLock

_CLAIM_SECONDS: Final = 0.05
"""Seconds for which a claim waits for another process that only checks the key."""


class KeyedProcessLock:
    """A lock for each key, held by one thread of one process at a time. Not re-entrant.

    The lock files are in ``folder``, which is created with the first file.
    """

    def __init__(self, folder: str, platform: Platform) -> None:
        self._folder = folder
        self._platform = platform
        self._threads = KeyedLock()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Hold the lock of ``key``.

        Raise `WorkspaceLocked` after `LOCK_SECONDS`, and `JournalError` if its file cannot be created.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._threads.hold(key, LOCK_SECONDS))
            except TimeoutError:
                raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=f"({os.getpid()})") from None
            lock = stack.enter_context(closing(self._open(key)))
            lock.acquire()
            stack.callback(lock.release)
            yield

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Hold the lock of ``key`` if nobody else holds it. Yield whether this succeeded. Raise
        `JournalError`."""
        with closing(self._open(key)) as lock:
            # Poll, because a thread that waits in the kernel could not be stopped before the holder releases
            # the lock.
            deadline = time.monotonic() + _CLAIM_SECONDS
            while not (is_held := lock.try_acquire()) and time.monotonic() < deadline:
                time.sleep(_CLAIM_SECONDS / 10)
            yield is_held

    def is_held(self, key: str) -> bool:
        """Return whether anybody holds the lock of ``key``."""
        if not os.path.exists(self._path(key)):
            return False
        with closing(self._open(key)) as lock:
            return not lock.try_acquire()

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(key.encode()).hexdigest()[:32])

    def _open(self, key: str) -> ProcessLock:
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            return ProcessLock(self._path(key), self._platform)
        except OSError as error:
            raise JournalError(reason=f"{self._folder}: {error.strerror}") from error
