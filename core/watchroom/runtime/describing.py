"""What a step's row says of it in short, for those who do not read its content. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom import validation
from watchroom.model import Json, Row
from watchroom.rules.requests import PendingCall, describe_call, summarize_request
from watchroom.runtime.events import (
    Cancelled,
    Done,
    Event,
    Failed,
    HumanAnswered,
    LlmResult,
    MessageReceived,
    ToolResult,
)
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.state import AgentState, StepResult

_LONGEST: Final = 200
"""Characters."""


def message_of(before: AgentState, result: StepResult) -> str:
    """One line: what the model said or called, what a tool gave, what was asked or answered."""
    for event in reversed(result.events):
        text = _said(before, result.new_state, event)
        if text:
            return validation.escape_unstorable(text.strip().split("\n", 1)[0], _LONGEST)
    return ""


def _said(before: AgentState, after: AgentState, event: Event) -> str:
    if isinstance(event, LlmResult):
        calls = ", ".join(_named(call) for call in event.result.tool_calls)
        return event.result.content.strip() or calls
    if isinstance(event, ToolResult):
        call = next((each for each in _calls(before) if each.id == event.id), None)
        return _named(call) if call else ""
    if isinstance(event, HumanAnswered):
        return event.answer.text or ", ".join(event.answer.values) or event.by
    if isinstance(event, MessageReceived):
        return event.message.content
    if isinstance(event, Failed):
        return event.error.message
    if isinstance(event, Cancelled | Done):
        return event.reason
    return summarize_request(after.asked) if after.asked else ""


def detail_of(
    state: AgentState, *, mail: int | None = None, heard: int | None = None, waiting: Sequence[int] = ()
) -> dict[str, Json]:
    """Where the session stands, in numbers; ``estimated`` of the tokens no provider has counted. ``mail``:
    the row of a person's word that the step took in. ``heard``: the newest of the rows that the session acted
    on, but for the messages in ``waiting``."""
    spent = state.spent
    detail: dict[str, Json] = {
        "status": state.status,
        "step": state.step_count,
        "tokens": [spent.input_tokens, spent.output_tokens],
        "calls": spent.tool_calls,
        "seconds": round(spent.seconds, 3),
    }
    if spent.estimated_tokens:
        detail["estimated"] = spent.estimated_tokens
    if state.error is not None:
        detail["error"] = state.error.code
    if mail is not None:
        detail["mail"] = mail
    if heard is not None:
        detail["heard"] = heard
    if waiting:
        detail["waiting"] = list(waiting)
    return detail


def _calls(state: AgentState) -> tuple[ToolCall, ...]:
    return (*state.approved_tools_calling, *state.pending_tools_calling, *state.open_calls)


def _named(call: ToolCall) -> str:
    return describe_call(PendingCall(call.id, call.function.name, call.function.arguments))


def heard_in(row: Row) -> tuple[int, tuple[int, ...]]:
    """The newest row that the session had acted on when it made ``row``, and the messages that waited."""
    heard, waiting = row.detail.get("heard"), row.detail.get("waiting")
    numbers = waiting if isinstance(waiting, list) else []
    return heard if isinstance(heard, int) else row.seq, tuple(
        each for each in numbers if isinstance(each, int)
    )
