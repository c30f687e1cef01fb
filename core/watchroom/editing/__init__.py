"""Text editing made for models (spec 4): a buffer of one's own, replacements that never guess, and a binding
to what stands beneath. Pure: no files, no journal."""

from watchroom.editing.binding import FLUSHED, DataSourceBinding
from watchroom.editing.buffer import Change, ContentChanged, ExclusiveBuffer
from watchroom.editing.editor import TextEditor
from watchroom.editing.matrix import (
    BufferTool,
    tool_name,
    tool_names,
    tool_of,
    visible_edit_tools,
    visible_sync_tools,
)
from watchroom.editing.rendering import LevelOfDetail, render, render_buffer
from watchroom.editing.response import (
    OperationResult,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.editing.scheduler import Frame, OpenBuffer, first_pass, frames
from watchroom.editing.source import DataSource, Sourced, SourceMoved, SourceReadOnly

__all__ = [
    "FLUSHED",
    "BufferTool",
    "Change",
    "ContentChanged",
    "DataSource",
    "DataSourceBinding",
    "ExclusiveBuffer",
    "Frame",
    "LevelOfDetail",
    "OpenBuffer",
    "OperationResult",
    "SourceMoved",
    "SourceReadOnly",
    "Sourced",
    "TextEditCandidate",
    "TextEditFlag",
    "TextEditMetrics",
    "TextEditResponse",
    "TextEditStatus",
    "TextEditor",
    "WorkflowState",
    "first_pass",
    "frames",
    "render",
    "render_buffer",
    "tool_name",
    "tool_names",
    "tool_of",
    "visible_edit_tools",
    "visible_sync_tools",
]
