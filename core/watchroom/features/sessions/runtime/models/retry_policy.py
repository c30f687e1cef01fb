"""Retries of failed requests."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Final, NamedTuple

_SECONDS: Final = re.compile(r"\d{1,12}(\.\d*)?", re.ASCII)


class RetryPolicy(NamedTuple):
    """The number and timing of retries of a request, with exponential backoff.

    - ``retries``: maximum number of retries, default 4.
    - ``base``: seconds before the first retry, doubled after each failure, default 0.5.
    - ``longest``: maximum seconds before a retry, default 60. It also limits the server's Retry-After.
    - ``jitter``: returns a number from 0 to 1, so that many agents do not retry at the same time.
    - ``sleep``, ``now``: the clock.
    """

    retries: int = 4
    base: float = 0.5
    longest: float = 60.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time

    def wait(self, failures: int, retry_after: str = "") -> float:
        """Return the seconds to wait after ``failures`` consecutive failures.

        ``retry_after``: the Retry-After header of the last failure.
        """
        asked = self._parse_retry_after(retry_after.strip())
        if asked is not None:
            return min(self.longest, asked) + self.base * self.jitter()
        return min(self.longest, self.base * 2.0 ** min(failures - 1, 60)) * (1 + self.jitter()) / 2

    def _parse_retry_after(self, retry_after: str) -> float | None:
        if not retry_after:
            return None
        if _SECONDS.fullmatch(retry_after):
            return float(retry_after)
        # Imported here because few servers send a date.
        from email.utils import parsedate_to_datetime

        try:
            date = parsedate_to_datetime(retry_after)
        except (ValueError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - self.now())
