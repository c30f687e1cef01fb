"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.conflicts import Conflict, ConflictKind
from watchroom.projections.fold import Fold
from watchroom.projections.model import (
    AgentView,
    BoardView,
    Delivery,
    DocumentView,
    Model,
    Need,
    NeedKind,
    SharedFile,
    Status,
)
from watchroom.projections.sessions import Asked, SessionView

__all__ = [
    "AgentView",
    "Asked",
    "BoardView",
    "Conflict",
    "ConflictKind",
    "Delivery",
    "DocumentView",
    "Fold",
    "Model",
    "Need",
    "NeedKind",
    "SessionView",
    "SharedFile",
    "Status",
]
