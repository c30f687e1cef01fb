"""Waits that take no time."""

from __future__ import annotations

from watchroom.features.sessions.runtime.models import RetryPolicy


class Waits:
    """Takes the place of waiting: notes how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def retry_policy(self, retries: int = 3) -> RetryPolicy:
        return RetryPolicy(retries=retries, jitter=lambda: 0.0, sleep=self.sleep)
