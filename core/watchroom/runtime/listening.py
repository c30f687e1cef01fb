"""Whoever listens to a runtime's events, as they come."""

from __future__ import annotations

import logging

from watchroom.runtime.agent import RuntimeConfig
from watchroom.runtime.events import Event

_log = logging.getLogger("watchroom")


def tell(config: RuntimeConfig, event: Event) -> None:
    """Have whoever listens hear of an event. What they make of it changes nothing."""
    if config.on_event is None:
        return
    try:
        config.on_event(event)
    except Exception:  # noqa: BLE001  # it is logged, and the step goes on
        _log.exception("on_event failed")
