"""The tools of buffers (EDIT): two tools open and close buffers, and each open buffer has its own tools
(EDIT-5.4).

The names of a buffer's tools begin with its name. Its state determines which tools it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, ValidationError

from watchroom.algorithms.editing import (
    BufferTool,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    build_tool_name,
    render,
)
from watchroom.algorithms.editing.editor import BufferMessages
from watchroom.features.boards.rows import BoardZone
from watchroom.features.buffers.rows import RESPONSE, buffer_name
from watchroom.features.buffers.service import Operation
from watchroom.features.buffers.tracing import SCHEMA
from watchroom.features.conflicts.reads import truncate_diff
from watchroom.features.files.rows import SharedFileZone
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, Message, Name, NoParams, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import AnyTool, Tool, ToolAnnotations, Toolset
from watchroom.model import OPERATION, Row

_ERRORS: Final = {TextEditStatus.MULTI_MATCH: "multi_match"}
"""The error code of a failure, by the status of its response. It replaces the code of the response."""
_MERGED: Final = "merged_with_conflicts"
"""The code of a response that succeeded but left conflicts to resolve."""

TOOLS: Final = Toolset("buffer", audience="agents")
tool = TOOLS.tool


class OpenBufferParams(ParamsModel):
    source: Literal["private", SharedFileZone, BoardZone, "file"]
    path: Name
    name: Name | None = None


class OpenBufferResult(ResultModel):
    """The opened buffer.

    - ``source``: ZONE:PATH.
    - ``tools``: the tools that its state allows.
    - ``markdown``: the buffer in the form for a model.
    """

    buffer: str
    source: str
    tools: list[str]
    markdown: str


@tool("open_buffer", path=("path",))
def open_buffer(context: ToolContext, params: OpenBufferParams) -> OpenBufferResult:
    """Open a buffer on a source. Raise `BufferTaken`, `TooManyBuffers`, `InvalidBuffer`, and the errors of
    the source."""
    row = context.zones.buffers.open(
        context.call,
        params.source,
        params.path,
        params.name or "",
        reserved=context.tool_names(),
    )
    return _open_result(context, params, row)


@TOOLS.replay(open_buffer)
def _open_result(context: ToolContext, params: OpenBufferParams, row: Row) -> OpenBufferResult:
    """Return the result with the buffer's text, because some agents are not shown their buffers before each
    request to the model."""
    (frame,) = context.zones.buffers.frames(context.call, only=buffer_name(row), language=context.language)
    return OpenBufferResult(
        buffer=frame.name,
        source=row.message,
        tools=list(frame.tools),
        markdown=frame.shown.detail,
    )


class CloseBufferParams(ParamsModel):
    buffer: Name
    discard: bool | None = None


class CloseBufferResult(ResultModel):
    buffer: str


@tool("close_buffer", path=("buffer",), destroys=True)
def close_buffer(context: ToolContext, params: CloseBufferParams) -> CloseBufferResult:
    """Close the buffer in ``params``, for the agent of ``context``. Raise `BufferNotFound`,
    `BufferUnflushed`."""
    row = context.zones.buffers.close(context.call, params.buffer, discard=bool(params.discard))
    return _close_result(context, params, row)


@TOOLS.replay(close_buffer)
def _close_result(context: ToolContext, params: CloseBufferParams, row: Row) -> CloseBufferResult:
    return CloseBufferResult(buffer=buffer_name(row))


class ReplaceParams(ParamsModel):
    old_text: str
    new_text: str


class ReplaceSelectionParams(ParamsModel):
    selection_id: Annotated[int, Field(ge=1, le=2**31 - 1), NO_BOOL]
    new_text: str | None = None


class AppendParams(ParamsModel):
    text: str


class FlushParams(ParamsModel):
    message: Message | None = None


class BufferEditResult(ResultModel):
    """The response of an editing tool (EDIT-4.1), also as Markdown (EDIT-6). ``error``, ``message`` and
    ``suggestion`` are set if the operation failed."""

    error: str | None = None
    message: str | None = None
    suggestion: str | None = None
    status: str
    workflow_state: str
    flags: list[str]
    summary: str
    guidance: str | None = None
    metrics: TextEditMetrics
    candidates: list[TextEditCandidate] | None = None
    diff: str | None = None
    notice: str | None = None
    """A text about the difference between the buffer and its source, None if they are equal."""
    operation_id: str | None = None
    """The id in the rows and debug records of the operation."""
    markdown: str


class _EditingTool(NamedTuple):
    """A tool of an open buffer: its parameters, its annotations, and the operation for given parameters."""

    params: type[ParamsModel]
    annotations: ToolAnnotations
    operation: Callable[[Any], Operation]


_READS: Final = ToolAnnotations(reads_only=True, idempotent=True)
_ADDS: Final = ToolAnnotations()
_REPLACES: Final = ToolAnnotations(destroys=True)
_EDITING_TOOLS: Final[Mapping[BufferTool, _EditingTool]] = {
    "replace": _EditingTool(
        ReplaceParams, _REPLACES, lambda p: lambda editor, binding: editor.replace(p.old_text, p.new_text)
    ),
    "replace_selection": _EditingTool(
        ReplaceSelectionParams,
        _REPLACES,
        lambda p: lambda editor, binding: editor.replace_selection(p.selection_id, p.new_text),
    ),
    "append": _EditingTool(AppendParams, _ADDS, lambda p: lambda editor, binding: editor.append(p.text)),
    "discard_selection": _EditingTool(
        NoParams, _ADDS, lambda _: lambda editor, binding: editor.discard_selection()
    ),
    "flush": _EditingTool(
        FlushParams, _REPLACES, lambda p: lambda editor, binding: binding.flush(p.message or "")
    ),
    "refresh": _EditingTool(NoParams, _ADDS, lambda _: lambda editor, binding: binding.refresh()),
    "diff": _EditingTool(NoParams, _READS, lambda _: lambda editor, binding: binding.diff()),
    "accept_source": _EditingTool(
        NoParams, _REPLACES, lambda _: lambda editor, binding: binding.accept_source()
    ),
}


def buffer_tool(actor: str, buffer: str, kind: BufferTool) -> AnyTool:
    """Return the tool ``kind`` of the open buffer ``buffer`` of ``actor``."""
    name, editing = build_tool_name(buffer, kind), _EDITING_TOOLS[kind]

    def run(context: ToolContext, params: ParamsModel) -> BufferEditResult:
        acted = context.zones.buffers.apply_operation(
            context.call,
            buffer,
            editing.operation(params),
            arguments=params.model_dump(exclude_none=True),
            language=context.language,
        )
        return _edit_result(context, *acted)

    return Tool(
        name,
        "buffer",
        "buffer",
        editing.params,
        BufferEditResult,
        editing.annotations,
        run,
        audience="agents",
        text_name=f"buffer_{kind}",
        text_values={"buffer": buffer},
        row_path=f"{actor}/{buffer}",
        replay_result=None if editing.annotations.reads_only else _replayed_edit_result,
    )


def _replayed_edit_result(context: ToolContext, params: ParamsModel, row: Row) -> BufferEditResult:
    kept, operation = row.detail.get(RESPONSE), str(row.detail.get(OPERATION, ""))
    try:
        response = TextEditResponse.model_validate(kept)
    except ValidationError as error:
        fields = {"operation_id": operation, "row": row.seq, "raw": kept, "problem": str(error)}
        SCHEMA.debug("%s: row %d", row.tool, row.seq, extra=fields)
        response = _schema_violation(context, buffer_name(row))
    return _edit_result(context, response, operation=operation)


def _schema_violation(context: ToolContext, buffer: str) -> TextEditResponse:
    """Return the response to use if the recorded response is unreadable."""
    found = context.zones.buffers.find(context.call, buffer, language=context.language)
    messages = BufferMessages(buffer, context.language)
    return TextEditResponse(
        status=TextEditStatus.EXCEPTION,
        workflow_state=found.editing,
        flags=TextEditFlag.SCHEMA_VIOLATION | TextEditFlag.DIAGNOSTIC_HINT,
        summary=messages.summary("schema_violation"),
        guidance=messages.guidance("schema_violation"),
        metrics=TextEditMetrics(new_length=len(found.text)),
        code="schema_violation",
    )


def _edit_result(
    context: ToolContext, response: TextEditResponse, notice: str = "", operation: str = ""
) -> BufferEditResult:
    """Return the result for ``response``. If the operation failed, the result has the fields of a failure."""
    done = response.is_done or response.code == _MERGED
    code = _ERRORS.get(response.status, response.code)
    if response.diff is not None:
        shown = truncate_diff(response.diff, context.texts, "editing.label.cut")
        response = response.model_copy(update={"diff": shown})
    return BufferEditResult(
        success=done,
        error=None if done else code,
        message=None if done else response.summary,
        suggestion=None if done else response.guidance,
        status=response.status.value,
        workflow_state=response.workflow_state.value,
        flags=list(response.flags.names),
        summary=response.summary,
        guidance=response.guidance,
        metrics=response.metrics,
        candidates=list(response.candidates) if response.candidates else None,
        diff=response.diff,
        notice=notice or None,
        operation_id=operation or None,
        markdown=render(response, context.language).detail,
    )
