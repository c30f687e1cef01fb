"""Limits of the pages: how many requests are served, and how many refusals are recorded."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Final

from watchroom.features.links.rows import Link
from watchroom.features.links.rules import LinkRefusal
from watchroom.features.links.service import Links

_WINDOW_SECONDS: Final = 60.0
MAX_ROWS: Final = 10
"""Maximum number of rows about refused links in a minute."""
MAX_UNKNOWN: Final = 60
"""Maximum number of requests with unknown links that are answered in a minute."""
MAX_PER_LINK: Final = 30
"""Maximum number of requests with the same link that are answered in a minute."""


class RateLimiter:
    """Counts events by key in windows of a minute. Thread-safe. ``clock``: returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._began = clock()
        self._counts: Counter[str] = Counter()

    def admits(self, key: str, most: int) -> bool:
        """Count an event of ``key``. Return whether there were at most ``most`` in this window."""
        with self._lock:
            now = self._clock()
            if now - self._began >= _WINDOW_SECONDS:
                self._began = now
                self._counts.clear()
            self._counts[key] += 1
            return self._counts[key] <= most


class RefusalRecord:
    """Records refused links: at most `MAX_ROWS` rows in a minute. The next row counts the others.
    Thread-safe."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._limit = RateLimiter()
        self._lock = Lock()
        self._uncounted = 0
        self._last: tuple[LinkRefusal, Link | None] | None = None
        """The last refusal without a row."""

    def add(self, reason: LinkRefusal, link: Link | None) -> None:
        """Record that ``link`` was refused. Raise `JournalError`."""
        with self._lock:
            if not self._limit.admits("", MAX_ROWS):
                self._uncounted += 1
                self._last = reason, link
                return
            uncounted, self._uncounted, self._last = self._uncounted, 0, None
        self._links.record_refusal(reason, link, uncounted)

    def close(self) -> None:
        """Record the refusals that have no row. Raise `JournalError`."""
        with self._lock:
            last, uncounted = self._last, self._uncounted
            self._uncounted, self._last = 0, None
        if last is not None:
            self._links.record_refusal(*last, uncounted - 1)
