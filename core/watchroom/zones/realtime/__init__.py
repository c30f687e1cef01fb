"""Documents that merge by themselves (spec 1 FR-4)."""

from watchroom.zones.realtime.view import View
from watchroom.zones.realtime.zone import RealtimeZone

__all__ = ["RealtimeZone", "View"]
