"""Check for new needs while the dashboard is open, and send alerts to the terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from watchroom.features.overview.model import Need, urgent_needs

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters.machines import RemoteNeed
from watchroom_tui.formatters.need_texts import alert_text
from watchroom_tui.services.alert_policy import (
    AlertMode,
    AlertState,
    initial_state,
    next_alerts,
    next_mode,
)
from watchroom_tui.services.terminal_alerts import alert_sequence


class AlertMonitor:
    """Monitor that announces new needs. It ignores needs that exist at the start, because the header shows
    them."""

    def __init__(self, app: Dashboard, mode: AlertMode) -> None:
        self.mode: AlertMode = mode
        self._app = app
        self._watch: AlertState | None = None
        self._is_on = False

    def start(self) -> None:
        """Start the announcements if the present is shown."""
        self._is_on = self._app.is_live
        self.record_current_needs()

    def record_current_needs(self) -> None:
        """Record the current needs as known, as soon as the journal is read completely."""
        app = self._app
        if self._watch is None and app.progress == 1:
            self._watch = initial_state(urgent_needs(app.model, app.now()))

    def cycle(self) -> None:
        """Switch to the next mode, and show it."""
        self.mode = next_mode(self.mode)
        self._app.show_message(self._app.texts(f"alert.mode.{self.mode}"))

    def tell(self, needs: Sequence[Need | RemoteNeed]) -> None:
        """Send an alert if it is due. ``needs``: the current needs."""
        app = self._app
        if self._watch is None or not self._is_on:
            return
        self._watch, told = next_alerts(self._watch, needs, time.monotonic())
        if told:
            title = f"Watchroom {app.place}"
            app.send_to_terminal(alert_sequence(self.mode, title, alert_text(told, app.texts), os.environ))
