"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.buffers import BufferView
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
from watchroom.projections.society import CommandView, MemberView, MessageView, TaskView

__all__ = [
    "AgentView",
    "Asked",
    "BoardView",
    "BufferView",
    "CommandView",
    "Conflict",
    "ConflictKind",
    "Delivery",
    "DocumentView",
    "Fold",
    "MemberView",
    "MessageView",
    "Model",
    "Need",
    "NeedKind",
    "SessionView",
    "SharedFile",
    "Status",
    "TaskView",
]
