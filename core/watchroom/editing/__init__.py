"""Text editing for models (EDIT): a buffer of one's own, replacements that never guess, and a binding to a
source. Pure: no files, no journal.

    editor = TextEditor("one two one", name="plan")
    editor.replace("two", "2")  # replaced: it stands there once
    editor.replace("one", "1")  # MULTI_MATCH: two candidates to choose from
    editor.replace_selection(2)  # "one 2 1"
"""

from watchroom.editing.buffer import ContentChanged, ExclusiveBuffer, TextChange
from watchroom.editing.data_source_binding import FLUSHED, DataSourceBinding
from watchroom.editing.editor import TextEditor
from watchroom.editing.frames import BoundEditor, Frame, build_frames, refresh_buffers
from watchroom.editing.markdown import LevelOfDetail, render, render_buffer
from watchroom.editing.response import (
    OperationResult,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.editing.source import DataSource, ReadOnlySourceError, SourceText, StaleSourceError
from watchroom.editing.tool_visibility import (
    BufferTool,
    build_tool_name,
    list_tool_names,
    parse_tool_name,
    visible_edit_tools,
    visible_sync_tools,
)

__all__ = [
    "FLUSHED",
    "BoundEditor",
    "BufferTool",
    "ContentChanged",
    "DataSource",
    "DataSourceBinding",
    "ExclusiveBuffer",
    "Frame",
    "LevelOfDetail",
    "OperationResult",
    "ReadOnlySourceError",
    "SourceText",
    "StaleSourceError",
    "TextChange",
    "TextEditCandidate",
    "TextEditFlag",
    "TextEditMetrics",
    "TextEditResponse",
    "TextEditStatus",
    "TextEditor",
    "WorkflowState",
    "build_frames",
    "build_tool_name",
    "list_tool_names",
    "parse_tool_name",
    "refresh_buffers",
    "render",
    "render_buffer",
    "visible_edit_tools",
    "visible_sync_tools",
]
