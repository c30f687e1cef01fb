"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.conflicts import Conflict, ConflictKind
from watchroom.projections.fold import Fold
from watchroom.projections.model import AgentView, Delivery, Model, Need, NeedKind, SharedFile, Status

__all__ = [
    "AgentView",
    "Conflict",
    "ConflictKind",
    "Delivery",
    "Fold",
    "Model",
    "Need",
    "NeedKind",
    "SharedFile",
    "Status",
]
