"""Text editing for models (EDIT): exclusive buffers, unambiguous replacements, bindings to sources.

Pure: no files, no journal.

    editor = TextEditor("one two one", name="plan")
    editor.replace("two", "2")  # replaced: it occurs once
    editor.replace("one", "1")  # MULTI_MATCH: two candidates to choose from
    editor.replace_selection(2)  # "one 2 1"
"""

from watchroom.algorithms.editing.data_source_binding import (
    FLUSHED,
    DataSource,
    DataSourceBinding,
    ReadOnlySourceError,
    SourceText,
    StaleSourceError,
)
from watchroom.algorithms.editing.editor import ContentChanged, TextChange, TextEditor
from watchroom.algorithms.editing.rendering import (
    BoundEditor,
    Frame,
    LevelOfDetail,
    build_frames,
    refresh_buffers,
    render,
    render_buffer,
)
from watchroom.algorithms.editing.response import (
    OperationResult,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.algorithms.editing.tool_visibility import (
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
