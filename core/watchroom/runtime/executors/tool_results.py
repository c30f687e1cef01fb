"""The outcome of a tool call, as the session and its model see it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from watchroom import validation
from watchroom.errors import TooLarge, ToolForbidden, WatchroomError
from watchroom.model import MAX_TEXT_BYTES, Json
from watchroom.runtime.events import Failed, ToolResult
from watchroom.runtime.messages import ToolCall, ToolMessage
from watchroom.runtime.state import AgentState, StepResult, count_failure
from watchroom.runtime.step_errors import describe_error
from watchroom.texts import Language
from watchroom.zones.task_errors import AgentEnded


def record_result(state: AgentState, call: ToolCall, result: Json, notice: str = "") -> StepResult:
    """The step from ``state`` in which ``call`` returned ``result``, with a ``notice`` for the model. A
    result with ``success: false`` counts as failed. Raises `TooLarge`, or ValueError or TypeError where it is
    no JSON."""
    content = _encode_result(result)
    event = ToolResult(id=call.id, result=json.loads(content))
    is_failure = isinstance(result, Mapping) and result.get("success") is False
    if isinstance(result, Mapping) and result.get("error") == AgentEnded.code:
        # The session is about to end because of that, and not because of a limit.
        return StepResult(events=(event,), new_state=_append_result(state, call, content, notice))
    counted = (
        count_failure(state, call) if is_failure else state.with_changes(errors_in_a_row=0, failed_turn=-1)
    )
    after = _append_result(counted, call, content, notice)
    return StepResult(events=(event,), new_state=after)


def fail_call(
    state: AgentState, call: ToolCall, error: WatchroomError, language: Language, notice: str = ""
) -> StepResult:
    """The step from ``state`` in which ``call`` ended with ``error``, described in ``language``, with a
    ``notice`` for the model."""
    content = _encode_result(_failure_result(error, language))
    after = _append_result(count_failure(state, call), call, content, notice)
    return StepResult(events=(Failed(error=describe_error(error, language)),), new_state=after)


def refuse_call(state: AgentState, call: ToolCall, error: WatchroomError, language: Language) -> StepResult:
    """The step from ``state`` in which ``call`` was not run, because of ``error``, described in ``language``.
    It counts as a failed result."""
    return record_result(state, call, _failure_result(error, language))


def forbid_call(state: AgentState, call: ToolCall, language: Language) -> StepResult:
    """The step from ``state`` in which ``call`` was refused by its tool's policy, described in
    ``language``."""
    return refuse_call(
        state, call, ToolForbidden(tool=validation.escape_unstorable(call.function.name, 100)), language
    )


def _failure_result(error: WatchroomError, language: Language) -> Json:
    info = describe_error(error, language)
    return {"success": False, "error": info.code, "message": info.message, "suggestion": info.suggestion}


def _append_result(state: AgentState, call: ToolCall, content: str, notice: str = "") -> AgentState:
    """The state with what came of a call; where a person changed its arguments, the model is told."""
    asked = next((each for each in state.open_calls if each.id == call.id), call)
    told = []
    if asked.function.arguments != call.function.arguments:
        told.append(f'"edited_arguments":{call.function.arguments.strip()}')
    if notice:
        told.append(f'"notice":{_encode_result(notice)}')
    if told:
        content = "{" + ",".join((*told, f'"result":{content}')) + "}"
    return state.with_messages(ToolMessage(tool_call_id=call.id, content=content))


def _encode_result(result: Json) -> str:
    """A result as its model reads it."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not validation.is_unicode(text):
        text = validation.replace_lone_surrogates(text)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text
