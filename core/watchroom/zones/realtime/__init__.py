"""Documents that several edit at once and that merge by themselves (spec 1 FR-4)."""

from watchroom.zones.realtime.agent_view import AgentView
from watchroom.zones.realtime.zone import RealtimeZone

__all__ = ["AgentView", "RealtimeZone"]
