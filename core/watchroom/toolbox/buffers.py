"""The tools of buffers (spec 4): two to open and close them, and of each open buffer the ones that its state
allows, under its name (spec 4 §5.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from watchroom.call_context import OPERATION
from watchroom.editing import (
    BufferTool,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    build_tool_name,
    render,
)
from watchroom.editing.buffer_messages import BufferMessages
from watchroom.model import Json, Row
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller
from watchroom.toolbox.missed import cut
from watchroom.toolbox.tool import ADDS, Hints, Tool, define
from watchroom.zones.buffers.record import CLOSE, OPEN, RESPONSE, name_of
from watchroom.zones.buffers.tracing import SCHEMA
from watchroom.zones.buffers.zone import Operation

_ERRORS: Final = {TextEditStatus.MULTI_MATCH: "multi_match"}
"""Whatever else is said of it."""
_MERGED: Final = "merged_with_conflicts"
"""Done as well, though there is something left to decide."""


def open_buffer(caller: Caller, args: take.OpenBuffer) -> give.BufferOpened:
    # What there is to offer is known only once all tools are defined.
    from watchroom.toolbox.offered import tools

    row = caller.buffers.open(
        caller.actor,
        args.source,
        args.path,
        args.name or "",
        tool=OPEN,
        reserved=tools().keys(),
    )
    return opened(caller, args, row)


def opened(caller: Caller, args: take.OpenBuffer, row: Row) -> give.BufferOpened:
    """With the text: not everyone who edits is shown it before each question."""
    (frame,) = caller.buffers.frames(caller.actor, only=name_of(row), language=caller.language)
    return give.BufferOpened(
        buffer=frame.name,
        source=row.message,
        tools=list(frame.tools),
        markdown=frame.shown.detail,
    )


def close_buffer(caller: Caller, args: take.CloseBuffer) -> give.BufferClosed:
    row = caller.buffers.close(caller.actor, args.buffer, tool=CLOSE, discard=bool(args.discard))
    return closed(caller, args, row)


def closed(caller: Caller, args: take.CloseBuffer, row: Row) -> give.BufferClosed:
    return give.BufferClosed(buffer=name_of(row))


def _replace(args: take.BufferReplace) -> Operation:
    return lambda editor, binding: editor.replace(args.old_text, args.new_text)


def _replace_selection(args: take.BufferReplaceSelection) -> Operation:
    return lambda editor, binding: editor.replace_selection(args.selection_id, args.new_text)


def _append(args: take.BufferAppend) -> Operation:
    return lambda editor, binding: editor.append(args.text)


def _flush(args: take.BufferFlush) -> Operation:
    return lambda editor, binding: binding.flush(args.message or "")


class _Shape(NamedTuple):
    """What one tool of a buffer takes, how it may be treated, and what it does."""

    takes: type[take.Arguments]
    hints: Hints
    does: Callable[..., Operation]


_EDITS: Final = Hints(destroys=True)
_SHAPES: Final[Mapping[BufferTool, _Shape]] = {
    "replace": _Shape(take.BufferReplace, _EDITS, _replace),
    "replace_selection": _Shape(take.BufferReplaceSelection, _EDITS, _replace_selection),
    "append": _Shape(take.BufferAppend, ADDS, _append),
    "discard_selection": _Shape(
        take.NoArguments, ADDS, lambda args: lambda editor, binding: editor.discard_selection()
    ),
    "flush": _Shape(take.BufferFlush, _EDITS, _flush),
    "refresh": _Shape(take.NoArguments, ADDS, lambda args: lambda editor, binding: binding.refresh()),
    "diff": _Shape(
        take.NoArguments,
        Hints(reads_only=True, idempotent=True),
        lambda args: lambda editor, binding: binding.diff(),
    ),
    "accept_source": _Shape(
        take.NoArguments, _EDITS, lambda args: lambda editor, binding: binding.accept_source()
    ),
}


def buffer_tool(actor: str, buffer: str, tool: BufferTool) -> Tool:
    """One tool of a buffer of ``actor``'s."""
    name, shape = build_tool_name(buffer, tool), _SHAPES[tool]

    def run(caller: Caller, args: take.Arguments) -> give.BufferEdited:
        given: Mapping[str, Json] = args.model_dump(exclude_none=True)
        acted = caller.buffers.act(
            caller.actor, buffer, shape.does(args), tool=name, arguments=given, language=caller.language
        )
        return _told(caller, *acted)

    return define(
        name,
        "buffer",
        shape.takes,
        give.BufferEdited,
        shape.hints,
        run,
        for_humans=False,
        retell=None if shape.hints.reads_only else _told_again,
        says=f"buffer_{tool}",
        values={"buffer": buffer},
        at=f"{actor}/{buffer}",
    )


def _told_again(caller: Caller, args: take.Arguments, row: Row) -> give.BufferEdited:
    kept, operation = row.detail.get(RESPONSE), str(row.detail.get(OPERATION, ""))
    try:
        response = TextEditResponse.model_validate(kept)
    except ValidationError as error:
        fields = {"operation_id": operation, "row": row.seq, "raw": kept, "problem": str(error)}
        SCHEMA.debug("%s: row %d", row.tool, row.seq, extra=fields)
        response = _unreadable(caller, name_of(row))
    return _told(caller, response, operation=operation)


def _unreadable(caller: Caller, buffer: str) -> TextEditResponse:
    """In place of an answer that was kept, and cannot be read."""
    found = caller.buffers.find(caller.actor, buffer, language=caller.language)
    wording = BufferMessages(buffer, caller.language)
    return TextEditResponse(
        status=TextEditStatus.EXCEPTION,
        workflow_state=found.editing,
        flags=TextEditFlag.SCHEMA_VIOLATION | TextEditFlag.DIAGNOSTIC_HINT,
        summary=wording.summary("schema_violation"),
        guidance=wording.guidance("schema_violation"),
        metrics=TextEditMetrics(new_length=len(found.text)),
        code="schema_violation",
    )


def _told(
    caller: Caller, response: TextEditResponse, notice: str = "", operation: str = ""
) -> give.BufferEdited:
    """An answer in the shape of results. One that did not do what was wanted tells so as failures do."""
    done = response.is_done or response.code == _MERGED
    code = _ERRORS.get(response.status, response.code)
    if response.diff is not None:
        shown = cut(response.diff, caller.texts, "editing.label.cut")
        response = response.model_copy(update={"diff": shown})
    return give.BufferEdited(
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
        markdown=render(response, caller.language).detail,
    )
