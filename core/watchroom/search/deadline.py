"""When something must be over."""

from __future__ import annotations

import time


class Deadline:
    """Is over ``seconds`` from now."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._at
