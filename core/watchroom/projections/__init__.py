"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.buffers import BufferView
from watchroom.projections.conflicts import ConflictKind, ConflictView
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
from watchroom.projections.sessions import RequestView, SessionView
from watchroom.projections.tasks import CommandView, MemberView, MessageView, TaskView

__all__ = [
    "AgentView",
    "BoardView",
    "BufferView",
    "CommandView",
    "ConflictKind",
    "ConflictView",
    "Delivery",
    "DocumentView",
    "Fold",
    "MemberView",
    "MessageView",
    "Model",
    "Need",
    "NeedKind",
    "RequestView",
    "SessionView",
    "SharedFile",
    "Status",
    "TaskView",
]
