"""Notices that never expire while a screen shows them."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import Final, Literal

from textual.app import App
from textual.notifications import Notification, Notify

from watchroom_tui.presentation.sanitize import sanitize

MIN_SECONDS: Final = 0.05
"""Min seconds of a notice's timer. A negative timer blocks the event loop (Textual 8.2), and a notice may
expire between a screen's check and its timer."""


NOTICE_SECONDS: Final = {"information": 3.0, "warning": 5.0, "error": 8.0}
"""Seconds that a notice is shown."""


@dataclass
class Notice(Notification):
    @property
    def time_left(self) -> float:
        return max(MIN_SECONDS, self.raised_at + self.timeout - time())

    @property
    def has_expired(self) -> bool:
        return self.raised_at + self.timeout <= time()


class NoticeApp(App[None]):
    """An app whose notices have timers of at least `MIN_SECONDS`."""

    def show_message(
        self, text: str, severity: Literal["information", "warning", "error"] = "information"
    ) -> None:
        """Show a notice. ``text`` is not read as markup."""
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
        """Show a notice, as Textual does."""
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, seconds, markup=markup)))
