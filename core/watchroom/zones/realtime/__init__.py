"""Documents that several edit at once and that merge by themselves (FILES-4)."""

from watchroom.zones.realtime.replica_view import ReplicaView
from watchroom.zones.realtime.zone import RealtimeZone

__all__ = ["RealtimeZone", "ReplicaView"]
