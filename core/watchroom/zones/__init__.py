"""The rules of the zones (FILES-zones): who may write, and against what a write is checked."""

from watchroom.zones.boards import BoardZone
from watchroom.zones.collab import CollabZone, FileVersion
from watchroom.zones.leases import Lease
from watchroom.zones.store import Store
from watchroom.zones.task_files import TaskFiles
from watchroom.zones.tasks import Task, TaskLimits
from watchroom.zones.zones import Zones

__all__ = [
    "BoardZone",
    "CollabZone",
    "FileVersion",
    "Lease",
    "Store",
    "Task",
    "TaskFiles",
    "TaskLimits",
    "Zones",
]
