"""What the rows mean, folded into one immutable model: for the dashboard, and for the command line."""

from watchroom.projections.agents import AgentView, MessageReader, Status, order_agents
from watchroom.projections.buffers import BufferView
from watchroom.projections.client_calls import ClientFile
from watchroom.projections.fold import Fold
from watchroom.projections.model import (
    ActivityEntry,
    BoardView,
    DocumentView,
    Model,
    Need,
    SharedFile,
)
from watchroom.projections.presence import PRESENCE_SECONDS, absent_work, with_presences
from watchroom.projections.processes import OpenWork
from watchroom.projections.sessions import RequestView, SessionView
from watchroom.projections.snapshots import keep_missing, keep_snapshot, open_fold, read_model
from watchroom.projections.tasks import CommandView, MessageView, TaskView
from watchroom.projections.timeline import TimelineColumn, TimelineView
from watchroom.projections.usage import UsageView
from watchroom.rules.conflicts import ConflictKind, ConflictView
from watchroom.rules.handoffs import Delivery
from watchroom.rules.members import Member
from watchroom.rules.needs import NeedKind

__all__ = [
    "PRESENCE_SECONDS",
    "ActivityEntry",
    "AgentView",
    "BoardView",
    "BufferView",
    "ClientFile",
    "CommandView",
    "ConflictKind",
    "ConflictView",
    "Delivery",
    "DocumentView",
    "Fold",
    "Member",
    "MessageReader",
    "MessageView",
    "Model",
    "Need",
    "NeedKind",
    "OpenWork",
    "RequestView",
    "SessionView",
    "SharedFile",
    "Status",
    "TaskView",
    "TimelineColumn",
    "TimelineView",
    "UsageView",
    "absent_work",
    "keep_missing",
    "keep_snapshot",
    "open_fold",
    "order_agents",
    "read_model",
    "with_presences",
]
