"""A toast that can always be shown once more."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import Final

from textual.notifications import Notification

SHORTEST: Final = 0.05
"""Seconds. A timer of less than none never lets anything else run (Textual 8.2), and between a screen's look
whether a notice has expired and the timer that it sets, the notice may expire."""


@dataclass
class Notice(Notification):
    @property
    def time_left(self) -> float:
        return max(SHORTEST, self.raised_at + self.timeout - time())

    @property
    def has_expired(self) -> bool:
        return self.raised_at + self.timeout <= time()
