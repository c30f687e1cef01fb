"""Retries of failed requests."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from watchroom.features.sessions.limits import parse_retry_after


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
        asked = parse_retry_after(retry_after, self.now())
        if asked is not None:
            return min(self.longest, asked) + self.base * self.jitter()
        return min(self.longest, self.base * 2.0 ** min(failures - 1, 60)) * (1 + self.jitter()) / 2
