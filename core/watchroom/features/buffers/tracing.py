"""Debug records of operations on buffers: the place of a found text, and the response of the source."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from watchroom import validation
from watchroom.algorithms.editing import TextEditResponse, TextEditStatus, parse_tool_name
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS
from watchroom.features.buffers.buffer_store import LoadedBuffer
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json
from watchroom.platform.debug_log import category_logger

MATCH_TRACE: Final = category_logger("TextEdit.MatchTrace")
SCHEMA: Final = category_logger("TextEdit.Schema")
PERSISTENCE: Final = category_logger("Sync.Persistence")
EXTERNAL: Final = category_logger("Sync.External")
_MAX_SHOWN: Final = 200


def trace_operation(
    loaded: LoadedBuffer,
    call: CallContext,
    response: TextEditResponse,
    arguments: Mapping[str, Json],
    seconds: float,
) -> None:
    """Log the operation of ``call``.

    - ``loaded``: the buffer after the operation.
    - ``response``: the response to the agent.
    - ``arguments``: the arguments of the call.
    - ``seconds``: the duration of the operation.
    """
    tool = call.tool
    logger = _logger_for(tool, response)
    if not logger.isEnabledFor(logging.DEBUG):
        return
    fields: dict[str, object] = {
        **_common_fields(loaded, call, seconds),
        "status": str(response.status),
        "workflow_state": str(response.workflow_state),
        "code": response.code,
        "delta": response.metrics.delta,
        "length": response.metrics.new_length,
    }
    more = (
        _match_fields(loaded, arguments, response)
        if logger is MATCH_TRACE
        else _source_fields(loaded, response)
    )
    logger.debug("%s: %s", tool, response.status, extra={**fields, **more})


def _logger_for(tool: str, response: TextEditResponse) -> logging.Logger:
    if _is_edit(tool):
        return MATCH_TRACE
    is_written = tool.endswith("_flush") and response.status is not TextEditStatus.EXTERNAL_CONFLICT
    return PERSISTENCE if is_written else EXTERNAL


def _is_edit(tool: str) -> bool:
    named = parse_tool_name(tool)
    return named is not None and named[1] in EDIT_TOOLS


def _common_fields(loaded: LoadedBuffer, call: CallContext, seconds: float) -> dict[str, object]:
    return {
        "operation_id": call.operation,
        "buffer": loaded.row.path,
        "tool": call.tool,
        "edition": loaded.editor.version,
        "seconds": seconds,
    }


def _match_fields(
    loaded: LoadedBuffer, arguments: Mapping[str, Json], response: TextEditResponse
) -> dict[str, object]:
    """Return the places of the found text: the first few places if a choice is open, otherwise the replaced
    place.

    Positions are code points, ends excluded.
    """
    changes = [each.change for each in loaded.changed if each.change is not None]
    found = [(each.at, each.at + each.removed) for each in changes]
    selections = loaded.editor.selections
    if selections is not None:
        found = [(start, start + len(selections.needle)) for start in selections.starts]
    sought = arguments.get("old_text")
    return {
        "sought": validation.escape_unstorable(sought, _MAX_SHOWN) if isinstance(sought, str) else None,
        "matches": [{"start": start, "end": end} for start, end in found],
        "match_count": len(found) if selections is None else selections.count,
        "contexts": [
            {"id": each.id, "start": each.context_start, "end": each.context_end, "preview": each.preview}
            for each in response.candidates or ()
        ],
    }


def _source_fields(loaded: LoadedBuffer, response: TextEditResponse) -> dict[str, object]:
    base = loaded.binding.base
    return {
        "source": loaded.record.source,
        "base_version": base.version,
        "base_edit": base.edit,
        "open_marks": len(loaded.binding.markers),
        "diff_length": len(response.diff or ""),
    }
