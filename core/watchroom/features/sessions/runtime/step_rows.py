"""Encodes the runtime's states as the content of rows, and decodes them. Pure.

`watchroom.features.sessions.rows` defines the format. Consecutive pieces of streamed text are one entry. The
final state in ``done`` is left out, because it is the state itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import TypeAdapter

from watchroom import validation
from watchroom.features.budgets.rows import PricedBy, UsageRecord, UsageTotal
from watchroom.features.requests.rows import PendingCall, describe_call, summarize_request
from watchroom.features.sessions.rows import encode_record, format_step_detail
from watchroom.features.sessions.runtime.events import (
    Cancelled,
    Failed,
    HumanAnswered,
    LlmResult,
    LlmStart,
    LlmStream,
    MessageReceived,
    RateLimited,
    ToolFinished,
)
from watchroom.features.sessions.runtime.messages import Message, ToolCall
from watchroom.features.sessions.runtime.models.protocol import ModelChunk
from watchroom.features.sessions.runtime.state import AgentState, Done, Event, StepResult
from watchroom.kernel.rules.details import StepDetail
from watchroom.model import Json, Row

_GROWING: Final = frozenset({"events", "messages"})
_FIELDS: Final = tuple(name for name in AgentState.model_fields if name not in _GROWING)
_events: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_messages: Final[TypeAdapter[Sequence[Message]]] = TypeAdapter(Sequence[Message])
_EMPTY: Final = ModelChunk()


def encode_initial_state(state: AgentState) -> str:
    """Return the content of a session's first row: ``state`` as JSON."""
    return state.model_dump_json()


def decode_initial_state(text: str) -> AgentState:
    """Return the state in ``text``, the content of a session's first row."""
    return AgentState.model_validate_json(text)


def encode_step(before: AgentState, after: AgentState) -> str:
    """Return the row content for the step from ``before`` to ``after``. The events of ``after`` begin with
    the events of ``before``."""
    kept = _common_length(before.messages, after.messages)
    changed = {name for name in _FIELDS if getattr(before, name) != getattr(after, name)}
    return encode_record(
        _pack_events(after.events[len(before.events) :]),
        [message.model_dump(mode="json") for message in after.messages[kept:]],
        after.model_dump(mode="json", include=changed),
        kept=kept if kept < len(before.messages) else None,
    )


def apply_encoded_step(before: AgentState, text: str) -> AgentState:
    """Return the state after ``before`` and the step whose row has the content ``text``."""
    record = json.loads(text)
    messages = before.messages[: record.get("keep", len(before.messages))]
    changed = AgentState.model_validate(
        {"session_id": before.session_id, "created_at": "", "last_modified": "", **record["state"]}
    )
    after = before.with_changes(
        messages=(*messages, *_messages.validate_python(record["messages"])),
        **{name: getattr(changed, name) for name in record["state"]},
    )
    return after.with_changes(events=(*before.events, *_unpack_events(record["events"], after)))


def _unpack_events(packed: Iterable[Mapping[str, Any]], after: AgentState) -> list[Event]:
    """Return the events of a record. ``after``: the state after these events."""
    events: list[Event] = []
    for each in packed:
        if "chunks" in each:
            events.extend(LlmStream(chunk=ModelChunk(content=text)) for text in each["chunks"])
        elif each["type"] == "done":
            final = after.with_changes(events=())
            events.append(Done.model_construct(type="done", reason=each["reason"], final_state=final))
        else:
            events.append(_events.validate_python(each))
    return events


def _pack_events(events: Sequence[Event]) -> list[dict[str, Json]]:
    packed: list[dict[str, Json]] = []
    for event in events:
        if isinstance(event, LlmStream) and event.chunk == _EMPTY.model_copy(
            update={"content": event.chunk.content}
        ):
            if packed and "chunks" in packed[-1]:
                cast("list[Json]", packed[-1]["chunks"]).append(event.chunk.content)
            else:
                packed.append({"type": "llm_stream", "chunks": [event.chunk.content]})
        elif isinstance(event, Done):
            packed.append({"type": "done", "reason": event.reason})
        else:
            packed.append(event.model_dump(mode="json"))
    return packed


def _common_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the number of equal messages at the start."""
    if after[: len(before)] == before:
        return len(before)
    return next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(after)
    )


_MAX_CHARACTERS: Final = 200
"""Maximum characters of a row's message."""


def summarize_step(before: AgentState, result: StepResult) -> str:
    """Return one line about ``result``, the step after the state ``before``.

    The line has the model's text or calls, a tool's name, a question or an answer.
    """
    for event in reversed(result.events):
        text = _describe_event(before, result.new_state, event)
        if text:
            return validation.escape_unstorable(text.strip().split("\n", 1)[0], _MAX_CHARACTERS)
    return ""


def _describe_event(before: AgentState, after: AgentState, event: Event) -> str:
    if isinstance(event, LlmResult):
        calls = ", ".join(_describe_named_call(call) for call in event.result.tool_calls)
        return event.result.content.strip() or calls
    if isinstance(event, ToolFinished):
        call = next((each for each in _all_calls(before) if each.id == event.id), None)
        return _describe_named_call(call) if call else ""
    if isinstance(event, HumanAnswered):
        return event.answer.text or ", ".join(event.answer.values) or event.by
    if isinstance(event, MessageReceived):
        return event.message.content
    if isinstance(event, Failed):
        return event.error.message
    if isinstance(event, RateLimited):
        return event.text
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
    """Return the detail of the row of a step that led to ``state``.

    - ``control``: the row of a person's instruction that the step carried out, None for none
    - ``last_processed``, ``waiting``: as for `format_step_detail`
    """
    spent = state.spent
    step = StepDetail(
        state.status,
        state.step_count,
        spent.input_tokens,
        spent.output_tokens,
        spent.estimated_tokens,
        spent.tool_calls,
        spent.seconds,
        state.error.code if state.error is not None else "",
        control,
        spent.cache_read_tokens,
        spent.cache_write_tokens,
        spent.cost,
        spent.unpriced_tokens,
    )
    return format_step_detail(step, last_processed=last_processed, waiting=waiting)


def used_in_step(before: AgentState, result: StepResult) -> UsageRecord | None:
    """Return the usage of ``result``, the step after the state ``before``; None if it asked no model."""
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
    """Return the number of the newest row that the session had processed at the step ``row``, and the row
    numbers of the messages that were still waiting."""
    heard, waiting = row.detail.get("heard"), row.detail.get("waiting")
    numbers = waiting if isinstance(waiting, list) else []
    return heard if isinstance(heard, int) else row.seq, tuple(
        each for each in numbers if isinstance(each, int)
    )
