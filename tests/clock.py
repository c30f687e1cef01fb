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
