"""A lock for each key, among the threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Lock


class KeyedLock:
    """A lock for each key, among the threads of this process. Not re-entrant."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._used: dict[str, tuple[Lock, int]] = {}
        """The locks in use, each with the number of threads that hold it or wait for it."""

    @contextmanager
    def hold(self, key: str, seconds: float = TIMEOUT_MAX) -> Iterator[None]:
        """Hold the lock of ``key``. Raise TimeoutError if it is still held after ``seconds`` (default: no
        timeout)."""
        with self._lock:
            lock, users = self._used.get(key, (Lock(), 0))
            self._used[key] = lock, users + 1
        try:
            if not lock.acquire(timeout=seconds):
                raise TimeoutError(key)
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
