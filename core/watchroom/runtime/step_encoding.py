"""A step as its row contains it: the new events, and what the step changed in the state. Pure.

Only what is new is written, so a step's row does not grow with its session. Consecutive pieces of streamed
text are one entry, and the final state in ``done`` is left out: it is the state itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import TypeAdapter

from watchroom.runtime.events import LlmStream
from watchroom.runtime.messages import Message
from watchroom.runtime.models.protocol import ModelChunk
from watchroom.runtime.state import AgentState, Done, Event

_GROWING: Final = frozenset({"events", "messages"})
_FIELDS: Final = tuple(name for name in AgentState.model_fields if name not in _GROWING)
_events: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_messages: Final[TypeAdapter[Sequence[Message]]] = TypeAdapter(Sequence[Message])
_EMPTY: Final = ModelChunk()


def encode_initial_state(state: AgentState) -> str:
    """The content of a session's first row: ``state`` as JSON."""
    return state.model_dump_json()


def decode_initial_state(text: str) -> AgentState:
    """The state in ``text``, the content of a session's first row."""
    return AgentState.model_validate_json(text)


def encode_step(before: AgentState, after: AgentState) -> str:
    """What changed from ``before`` to ``after`` as JSON. The events of ``after`` begin with those of
    ``before``."""
    kept = _common_length(before.messages, after.messages)
    changed = {name for name in _FIELDS if getattr(before, name) != getattr(after, name)}
    record: dict[str, object] = {
        "events": _pack_events(after.events[len(before.events) :]),
        "messages": [message.model_dump(mode="json") for message in after.messages[kept:]],
        "state": after.model_dump(mode="json", include=changed),
    }
    if kept < len(before.messages):
        record["keep"] = kept
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def apply_encoded_step(before: AgentState, text: str) -> AgentState:
    """The state after ``before`` and the step with the content ``text``."""
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
    """The events of a record; ``after`` is the state that they led to."""
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


def _pack_events(events: Sequence[Event]) -> list[dict[str, object]]:
    packed: list[dict[str, object]] = []
    for event in events:
        if isinstance(event, LlmStream) and event.chunk == _EMPTY.model_copy(
            update={"content": event.chunk.content}
        ):
            if packed and "chunks" in packed[-1]:
                cast("list[str]", packed[-1]["chunks"]).append(event.chunk.content)
            else:
                packed.append({"type": "llm_stream", "chunks": [event.chunk.content]})
        elif isinstance(event, Done):
            packed.append({"type": "done", "reason": event.reason})
        else:
            packed.append(event.model_dump(mode="json"))
    return packed


def _common_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages at the start are the same."""
    if after[: len(before)] == before:
        return len(before)
    return next(
        (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(after)
    )
