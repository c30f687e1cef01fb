"""What came of a tool call, as the session and its model learn of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from watchroom import validation
from watchroom.errors import TooLarge, ToolForbidden, WatchroomError
from watchroom.model import MAX_TEXT_BYTES, Json
from watchroom.runtime.events import Failed, ToolResult
from watchroom.runtime.failures import error_info
from watchroom.runtime.messages import ToolCall, ToolMessage
from watchroom.runtime.state import AgentState, StepResult, with_failure
from watchroom.texts import Language
from watchroom.zones.task_errors import AgentEnded


def gave(state: AgentState, call: ToolCall, result: Json, notice: str = "") -> StepResult:
    """The step in which ``call`` gave ``result``, with a ``notice`` for the model. One that says
    ``success: false`` has failed. Raises `TooLarge`, or ValueError or TypeError where it is no JSON."""
    content = _told(result)
    event = ToolResult(id=call.id, result=json.loads(content))
    is_failure = isinstance(result, Mapping) and result.get("success") is False
    if isinstance(result, Mapping) and result.get("error") == AgentEnded.code:
        # Its session is about to be over: that, and no limit, is how it ends.
        return StepResult(events=(event,), new_state=_with_result(state, call, content, notice))
    counted = with_failure(state, call) if is_failure else state.but(errors_in_a_row=0, failed_turn=-1)
    after = _with_result(counted, call, content, notice)
    return StepResult(events=(event,), new_state=after)


def broke(state: AgentState, call: ToolCall, error: WatchroomError, language: Language) -> StepResult:
    """The step in which ``call`` ended with ``error``."""
    after = _with_result(with_failure(state, call), call, _told(_failure(error, language)))
    return StepResult(events=(Failed(error=error_info(error, language)),), new_state=after)


def refused(state: AgentState, call: ToolCall, error: WatchroomError, language: Language) -> StepResult:
    """The step in which ``call`` was not run, for the reason that ``error`` tells. It is a result like
    others, which failed."""
    return gave(state, call, _failure(error, language))


def forbidden(state: AgentState, call: ToolCall, language: Language) -> StepResult:
    """The step in which ``call`` was refused because of its tool's policy."""
    return refused(
        state, call, ToolForbidden(tool=validation.escape_unstorable(call.function.name, 100)), language
    )


def _failure(error: WatchroomError, language: Language) -> Json:
    info = error_info(error, language)
    return {"success": False, "error": info.code, "message": info.message, "suggestion": info.suggestion}


def _with_result(state: AgentState, call: ToolCall, content: str, notice: str = "") -> AgentState:
    """The state with what came of a call; where a person changed its arguments, the model is told."""
    if notice:
        content = f'{{"notice":{_told(notice)},"result":{content}}}'
    asked = next((each for each in state.open_calls if each.id == call.id), call)
    if asked.function.arguments != call.function.arguments:
        content = f'{{"edited_arguments":{call.function.arguments.strip()},"result":{content}}}'
    return state.with_messages(ToolMessage(tool_call_id=call.id, content=content))


def _told(result: Json) -> str:
    """A result as its model reads it."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not validation.is_unicode(text):
        text = validation.replace_lone_surrogates(text)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text
