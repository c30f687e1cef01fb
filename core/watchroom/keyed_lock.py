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
        """Each lock that is held, with how many hold it or wait for it."""

    @contextmanager
    def hold(self, key: str, seconds: float = TIMEOUT_MAX) -> Iterator[None]:
        """Wait until nobody else holds the lock of ``key``, and hold it. Raises TimeoutError after so many
        ``seconds`` in vain."""
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
