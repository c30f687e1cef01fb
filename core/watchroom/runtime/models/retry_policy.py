"""When a request that failed is repeated."""

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
    """How often a request is repeated (``retries``), and how long to wait before each time: ``base`` seconds
    at first, twice as long after every failure, at most ``longest``. A time that the server asks for is
    obeyed within that bound.

    ``jitter`` returns a number from 0 to 1, so that many agents do not come back all at once; ``sleep`` and
    ``now`` are those of the clock."""

    retries: int = 4
    base: float = 0.5
    longest: float = 60.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time

    def wait(self, failures: int, retry_after: str = "") -> float:
        """Seconds to wait after so many ``failures`` in a row, the last of them with the header
        ``retry_after``."""
        asked = self._parse_retry_after(retry_after.strip())
        if asked is not None:
            return min(self.longest, asked) + self.base * self.jitter()
        return min(self.longest, self.base * 2.0 ** min(failures - 1, 60)) * (1 + self.jitter()) / 2

    def _parse_retry_after(self, retry_after: str) -> float | None:
        if not retry_after:
            return None
        if _SECONDS.fullmatch(retry_after):
            return float(retry_after)
        # Loaded only here: few servers send a date.
        from email.utils import parsedate_to_datetime

        try:
            date = parsedate_to_datetime(retry_after)
        except (ValueError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - self.now())
