"""Check for new needs while the dashboard is open, and send alerts to the terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from watchroom.features.overview.model import Need, urgent_needs

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters.labels import alert_text
from watchroom_tui.services.alert_policy import AlertMode, AlertState, initial_state, next_alerts, next_mode
from watchroom_tui.services.terminal_alerts import alert_sequence


class AlertMonitor:
    """Tells of new needs. What waits when the whole journal is read is never told: the header says it."""

    def __init__(self, app: Dashboard, mode: AlertMode) -> None:
        self.mode: AlertMode = mode
        self._app = app
        self._watch: AlertState | None = None
        self._is_on = False

    def start(self) -> None:
        """Begin to tell, if what is shown is live: nothing of the past is told."""
        self._is_on = self._app.is_live
        self.record_current_needs()

    def record_current_needs(self) -> None:
        """Hold what waits now for known, if the journal is read whole and that was not done before."""
        app = self._app
        if self._watch is None and app.progress == 1:
            self._watch = initial_state(urgent_needs(app.model, app.now()))

    def cycle(self) -> None:
        """To the next mode, and say which it is."""
        self.mode = next_mode(self.mode)
        self._app.show_message(self._app.texts(f"alert.mode.{self.mode}"))

    def tell(self, needs: Sequence[Need]) -> None:
        """Send an alert if one is due; ``needs`` is what waits for a person now."""
        app = self._app
        if self._watch is None or not self._is_on:
            return
        self._watch, told = next_alerts(self._watch, needs, time.monotonic())
        if told:
            title = f"Watchroom {app.place}"
            app.send_to_terminal(alert_sequence(self.mode, title, alert_text(told, app.texts), os.environ))
