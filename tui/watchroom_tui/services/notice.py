"""Passing messages, which can always be shown once more."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import Final, Literal

from textual.app import App
from textual.notifications import Notification, Notify

from watchroom_tui.presentation.sanitize import sanitize

SHORTEST: Final = 0.05
"""Seconds. A timer of less than none never lets anything else run (Textual 8.2), and between a screen's look
whether a notice has expired and the timer that it sets, the notice may expire."""


NOTICE_SECONDS: Final = {"information": 3.0, "warning": 5.0, "error": 8.0}
"""So long a passing message stays."""


@dataclass
class Notice(Notification):
    @property
    def time_left(self) -> float:
        return max(SHORTEST, self.raised_at + self.timeout - time())

    @property
    def has_expired(self) -> bool:
        return self.raised_at + self.timeout <= time()


class NoticeApp(App[None]):
    """An app whose notices no screen can meet at the very moment when they end."""

    def show_message(
        self, text: str, severity: Literal["information", "warning", "error"] = "information"
    ) -> None:
        """A passing message; ``text`` is shown as it is."""
        self.notify(sanitize(text), severity=severity, markup=False, timeout=NOTICE_SECONDS[severity])

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """As Textual's."""
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, seconds, markup=markup)))
