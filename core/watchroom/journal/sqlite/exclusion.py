"""Keyed locks between the processes of one machine: a file for each key, unlocked when its holder dies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from watchroom.errors import JournalError, WorkspaceLocked
from watchroom.locks import LOCK_SECONDS, ProcessLock


class KeyedProcessLock:
    """A lock for each key, held by one thread of one process at a time. Their files are in ``folder``, which
    is made with the first one. Not re-entrant; different keys are independent of each other."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = Lock()
        self._used: dict[str, tuple[Lock, int]] = {}
        """Each lock that is held, with how many threads hold it or wait for it."""

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait until nobody else holds the lock of ``key``, and hold it.

        Raises `WorkspaceLocked` after `LOCK_SECONDS`, and `JournalError` where its file cannot be made.
        """
        with self._of_thread(key):
            lock = self._open(key)
            try:
                lock.acquire()
                try:
                    yield
                finally:
                    lock.release()
            finally:
                lock.close()

    @contextmanager
    def _of_thread(self, key: str) -> Iterator[None]:
        with self._lock:
            lock, users = self._used.get(key, (Lock(), 0))
            self._used[key] = lock, users + 1
        try:
            if not lock.acquire(timeout=LOCK_SECONDS):
                raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=f"this process ({os.getpid()})")
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._lock:
                users = self._used[key][1] - 1
                if users:
                    self._used[key] = lock, users
                else:
                    del self._used[key]

    def _open(self, key: str) -> ProcessLock:
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            return ProcessLock(os.path.join(self._folder, name))
        except OSError as error:
            raise JournalError(reason=f"{self._folder}: {error.strerror}") from error
