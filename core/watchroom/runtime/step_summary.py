"""The message and the detail of a step's row, for those who do not read its content. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom import validation
from watchroom.model import Json, Row
from watchroom.rules.requests import PendingCall, describe_call, summarize_request
from watchroom.rules.usage import PricedBy, UsageRecord, UsageTotal
from watchroom.runtime.events import (
    Cancelled,
    Failed,
    HumanAnswered,
    LlmResult,
    LlmStart,
    MessageReceived,
    ToolResult,
)
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.state import AgentState, Done, Event, StepResult

_LONGEST: Final = 200
"""Characters."""


def summarize_step(before: AgentState, result: StepResult) -> str:
    """One line about ``result``, the step after the state ``before``: what the model said or called, a tool's
    name, what was asked or answered."""
    for event in reversed(result.events):
        text = _describe_event(before, result.new_state, event)
        if text:
            return validation.escape_unstorable(text.strip().split("\n", 1)[0], _LONGEST)
    return ""


def _describe_event(before: AgentState, after: AgentState, event: Event) -> str:
    if isinstance(event, LlmResult):
        calls = ", ".join(_describe_named_call(call) for call in event.result.tool_calls)
        return event.result.content.strip() or calls
    if isinstance(event, ToolResult):
        call = next((each for each in _all_calls(before) if each.id == event.id), None)
        return _describe_named_call(call) if call else ""
    if isinstance(event, HumanAnswered):
        return event.answer.text or ", ".join(event.answer.values) or event.by
    if isinstance(event, MessageReceived):
        return event.message.content
    if isinstance(event, Failed):
        return event.error.message
    if isinstance(event, Cancelled | Done):
        return event.reason
    return summarize_request(after.asked) if after.asked else ""


def step_detail(
    state: AgentState,
    *,
    control: int | None = None,
    last_processed: int | None = None,
    waiting: Sequence[int] = (),
) -> dict[str, Json]:
    """The detail of a step's row: status, step count and costs of ``state``. ``estimated`` counts the tokens
    that no provider has counted.

    ``control`` is the row of a person's instruction that the step carried out. ``last_processed`` is the
    newest row that the session has acted on, except for the messages in ``waiting``.
    """
    spent = state.spent
    detail: dict[str, Json] = {
        "status": state.status,
        "step": state.step_count,
        "tokens": [spent.input_tokens, spent.output_tokens],
        "calls": spent.tool_calls,
        "seconds": round(spent.seconds, 3),
    }
    if spent.cache_read_tokens or spent.cache_write_tokens:
        detail["cached"] = [spent.cache_read_tokens, spent.cache_write_tokens]
    if spent.cost:
        detail["cost"] = spent.cost
    if spent.unpriced_tokens:
        detail["unpriced"] = spent.unpriced_tokens
    if spent.estimated_tokens:
        detail["estimated"] = spent.estimated_tokens
    if state.error is not None:
        detail["error"] = state.error.code
    if control is not None:
        detail["mail"] = control
    if last_processed is not None:
        detail["heard"] = last_processed
    if waiting:
        detail["waiting"] = list(waiting)
    return detail


def used_in_step(before: AgentState, result: StepResult) -> UsageRecord | None:
    """What ``result``, the step after the state ``before``, used; None if it asked no model."""
    was, now = before.spent, result.new_state.spent
    if now.model_calls == was.model_calls:
        return None
    said = next(
        (event.usage for event in result.events if isinstance(event, LlmResult) and event.usage), None
    )
    started = next((event.model for event in result.events if isinstance(event, LlmStart)), "")
    tokens = UsageTotal(
        now.input_tokens - was.input_tokens,
        now.output_tokens - was.output_tokens,
        now.cache_read_tokens - was.cache_read_tokens,
        now.cache_write_tokens - was.cache_write_tokens,
        round(now.cost - was.cost, 9),
        now.unpriced_tokens - was.unpriced_tokens,
    )
    is_own_price = said is not None and said.cost is not None
    by: PricedBy = "" if tokens.unpriced or not tokens.tokens else "client" if is_own_price else "table"
    return UsageRecord((said.model if said else "") or started, tokens._replace(priced_by=by))


def _all_calls(state: AgentState) -> tuple[ToolCall, ...]:
    return (*state.approved_tools_calling, *state.pending_tools_calling, *state.open_calls)


def _describe_named_call(call: ToolCall) -> str:
    return describe_call(PendingCall(call.id, call.function.name, call.function.arguments))


def parse_processed_rows(row: Row) -> tuple[int, tuple[int, ...]]:
    """From ``row``, a step: the newest row that the session had acted on, and the messages that were
    waiting."""
    heard, waiting = row.detail.get("heard"), row.detail.get("waiting")
    numbers = waiting if isinstance(waiting, list) else []
    return heard if isinstance(heard, int) else row.seq, tuple(
        each for each in numbers if isinstance(each, int)
    )
