"""The results of steps: errors, and results of tool calls, as the session and its model see them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom import validation
from watchroom.errors import AgentEnded, ModelLimited, TooLarge, ToolFailed, ToolForbidden, WatchroomError
from watchroom.features.sessions.limits import MAX_WORDS
from watchroom.features.sessions.runtime.events import ErrorInfo, Failed, RateLimited, ToolFinished
from watchroom.features.sessions.runtime.messages import ToolCall, ToolMessage
from watchroom.features.sessions.runtime.state import AgentState, Event, ModelLimit, StepResult, count_failure
from watchroom.model import MAX_TEXT_BYTES, Json, timestamp
from watchroom.texts import Language
from watchroom.validation import extract_first_line

_MOST_REASON: Final = 500
"""Maximum characters that are kept of the text of a tool's or an agent's own exception."""


def fail_step(
    state: AgentState, error: BaseException, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """Return the step from ``state`` that ended with ``error``, after the events ``before``."""
    info = describe_error(error, language)
    after = state.with_changes(status="error", error=info, errors_in_a_row=state.errors_in_a_row + 1)
    return StepResult(events=(*before, Failed(error=info)), new_state=after)


def park_step(
    state: AgentState, error: ModelLimited, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """Return the step from ``state`` that parks the session, because the limit of its model is reached.
    ``before``: the earlier events of the step."""
    info = describe_error(error, language)
    words = extract_first_line(str(error.values.get("problem", "")) or info.message, MAX_WORDS)
    resets = "" if error.resets is None else timestamp(error.resets)
    after = state.with_changes(status="parked", error=info, limit=ModelLimit(resets=error.resets, text=words))
    return StepResult(events=(*before, RateLimited(text=words, resets=resets)), new_state=after)


def describe_error(error: BaseException, language: Language) -> ErrorInfo:
    """Return ``error`` as a record in ``language``. Errors that are not a `WatchroomError` are recorded by
    type and text."""
    if isinstance(error, WatchroomError):
        return ErrorInfo(
            code=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
    return ErrorInfo(code="agent_failed", message=_format_error(error))


def wrap_tool_error(tool: str, error: BaseException) -> WatchroomError:
    """Return ``error``, raised by ``tool``, as a `WatchroomError`, default `ToolFailed`."""
    return error if isinstance(error, WatchroomError) else ToolFailed(tool=tool, reason=_format_error(error))


def _format_error(error: BaseException) -> str:
    return validation.escape_unstorable(f"{type(error).__name__}: {error}", _MOST_REASON)


def record_result(state: AgentState, call: ToolCall, result: Json, notice: str = "") -> StepResult:
    """Return the step from ``state`` in which ``call`` returned ``result``.

    ``notice``: a text for the model, empty for none. A result with ``success: false`` counts as a failure.
    Raise `TooLarge`, or ValueError or TypeError if the result is not JSON.
    """
    content = _encode_result(result)
    event = ToolFinished(id=call.id, result=json.loads(content))
    is_failure = isinstance(result, Mapping) and result.get("success") is False
    if isinstance(result, Mapping) and result.get("error") == AgentEnded.code:
        # The session ends because its agent was ended. Counting a failure could end it by a limit first.
        return StepResult(events=(event,), new_state=_append_result(state, call, content, notice))
    counted = (
        count_failure(state, call) if is_failure else state.with_changes(errors_in_a_row=0, failed_turn=-1)
    )
    after = _append_result(counted, call, content, notice)
    return StepResult(events=(event,), new_state=after)


def fail_call(
    state: AgentState, call: ToolCall, error: WatchroomError, language: Language, notice: str = ""
) -> StepResult:
    """Return the step from ``state`` in which ``call`` failed with ``error``, with a ``notice`` for the
    model."""
    content = _encode_result(_failure_result(error, language))
    after = _append_result(count_failure(state, call), call, content, notice)
    return StepResult(events=(Failed(error=describe_error(error, language)),), new_state=after)


def refuse_call(state: AgentState, call: ToolCall, error: WatchroomError, language: Language) -> StepResult:
    """Return the step from ``state`` in which ``call`` was refused with ``error``. It counts as a failure."""
    return record_result(state, call, _failure_result(error, language))


def forbid_call(state: AgentState, call: ToolCall, language: Language) -> StepResult:
    """Return the step from ``state`` in which the policy of its tool refused ``call``."""
    return refuse_call(
        state, call, ToolForbidden(tool=validation.escape_unstorable(call.function.name, 100)), language
    )


def _failure_result(error: WatchroomError, language: Language) -> Json:
    info = describe_error(error, language)
    return {"success": False, "error": info.code, "message": info.message, "suggestion": info.suggestion}


def _append_result(state: AgentState, call: ToolCall, content: str, notice: str = "") -> AgentState:
    """Return ``state`` with the result of ``call``, and with the arguments if a person edited them."""
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
    """Return ``result`` as JSON for the model."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not validation.is_unicode(text):
        text = validation.replace_lone_surrogates(text)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text
