"""The rules of the three zones (spec 1 §4.1): who may write, and against what a write is checked."""

from watchroom.zones.attention import Attention
from watchroom.zones.collab import CollabZone, FileVersion, Written
from watchroom.zones.handoff import Handoff, HandoffZone
from watchroom.zones.outside import OutsideEdits
from watchroom.zones.private import PrivateZone
from watchroom.zones.settling import Settling
from watchroom.zones.store import Store

__all__ = [
    "Attention",
    "CollabZone",
    "FileVersion",
    "Handoff",
    "HandoffZone",
    "OutsideEdits",
    "PrivateZone",
    "Settling",
    "Store",
    "Written",
]
