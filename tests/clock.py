"""A clock that jumps, as a laptop's does on waking up, and any clock when it is set."""

from __future__ import annotations

import time

import pytest

HOUR = 3600 * 10**9
"""Nanoseconds."""


class JumpingClock:
    """The wall clock of this process, ``ahead`` (nanoseconds) of the true time. Monotonic clocks do not
    jump."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0
        true_time = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: true_time() + self.ahead)


class JumpingMonotonicClock:
    """The monotonic clock of this process and of its event loops, ``ahead`` (seconds) of the true time, so that
    timeouts end. The wall clock does not jump."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        true_time = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: true_time() + self.ahead)
