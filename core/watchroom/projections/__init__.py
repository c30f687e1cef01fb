"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.buffers import BufferView
from watchroom.projections.fold import Fold
from watchroom.projections.model import (
    AgentView,
    BoardView,
    DocumentView,
    Model,
    Need,
    SharedFile,
    Status,
)
from watchroom.projections.presence import with_presences
from watchroom.projections.sessions import RequestView, SessionView
from watchroom.projections.tasks import CommandView, MessageView, TaskView
from watchroom.rules.conflicts import ConflictKind, ConflictView
from watchroom.rules.handoffs import Delivery
from watchroom.rules.members import Member
from watchroom.rules.needs import NeedKind

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
    "Member",
    "MessageView",
    "Model",
    "Need",
    "NeedKind",
    "RequestView",
    "SessionView",
    "SharedFile",
    "Status",
    "TaskView",
    "with_presences",
]
