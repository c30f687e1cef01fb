"""The rules of the zones (FILES-zones): who may write, and against what a write is checked."""

from watchroom.zones.acknowledgements import Acknowledgements
from watchroom.zones.boards import BoardZone
from watchroom.zones.collab import CollabZone, FileVersion
from watchroom.zones.conflict_settlement import ConflictSettlement
from watchroom.zones.handoff import HandoffZone
from watchroom.zones.leases import Lease, Leases
from watchroom.zones.members import Members
from watchroom.zones.private import PrivateZone
from watchroom.zones.requests import RequestZone
from watchroom.zones.sessions import SessionZone
from watchroom.zones.store import Store
from watchroom.zones.task_files import TaskFiles
from watchroom.zones.tasks import Task, TaskLimits, Tasks

__all__ = [
    "Acknowledgements",
    "BoardZone",
    "CollabZone",
    "ConflictSettlement",
    "FileVersion",
    "HandoffZone",
    "Lease",
    "Leases",
    "Members",
    "PrivateZone",
    "RequestZone",
    "SessionZone",
    "Store",
    "Task",
    "TaskFiles",
    "TaskLimits",
    "Tasks",
]
