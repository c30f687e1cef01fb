"""Brings up to date what changes with time alone: ages, deadlines, needs that come and go without a row."""

from __future__ import annotations

from typing import Final

from watchroom.features.overview.model import urgent_needs

from watchroom_tui.context import Dashboard
from watchroom_tui.services.alert_monitor import AlertMonitor

CLOCK_SECONDS: Final = 1.0


class Clock:
    """Ticks once a second from `start` on, for all at one stroke: a dashboard at rest wakes no oftener."""

    def __init__(self, app: Dashboard, alerts: AlertMonitor) -> None:
        self._app = app
        self._alerts = alerts

    def start(self) -> None:
        self._alerts.start()
        self._app.set_interval(CLOCK_SECONDS, self._tick)

    def _tick(self) -> None:
        app = self._app
        needs = urgent_needs(app.model, app.now())
        # What is new in the present is told while an earlier moment is shown, too.
        self._alerts.tell(needs if app.is_live else urgent_needs(app.newest_model, app.journal.now()))
        if app.base_screen is not None:
            app.base_screen.follow_clock(needs)
