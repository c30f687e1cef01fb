"""A span as it is given: what it says by the GenAI semantic conventions (OpenTelemetry), and its id. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.model import Json, Row
from watchroom.rules.trace_context import TracedCall
from watchroom.rules.usage import UsageRecord
from watchroom.validation import escape_unstorable

SpanKind: TypeAlias = Literal["internal", "client", "server"]
SpanValue: TypeAlias = str | int | float | tuple[str, ...]

LONGEST_MESSAGES: Final = 100_000
"""Characters of the messages of one chat that are given, the newest, where texts are."""
TRACE_BYTES: Final = 16
SPAN_BYTES: Final = 8
"""How long the ids of traces and of spans are."""
_LONGEST_NAME: Final = 200
_LARGEST: Final = 2**63 - 1
"""A number is sent in 64 bits."""


class SpanRecord(NamedTuple):
    """A span that is over. Ids are hexadecimal digits, ``parent_id`` is empty of the first span of a trace;
    ``start`` and ``end`` are nanoseconds since the epoch. ``error`` is the code of what went wrong, empty
    where nothing did; ``links`` are ids of earlier spans of the trace, ``row`` the row by which it was over.
    ``is_parent_remote``: the parent is a span of whoever called."""

    name: str
    kind: SpanKind
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: Mapping[str, SpanValue]
    row: int
    error: str = ""
    links: tuple[str, ...] = ()
    is_parent_remote: bool = False


def traced_span(row: Row, call: TracedCall) -> SpanRecord:
    """The span of the ``call`` that came from elsewhere and whose first row is ``row``."""
    attributes: dict[str, SpanValue] = {
        **agent_attributes("execute_tool", row.actor),
        "gen_ai.tool.name": bound_name(row.tool),
        "gen_ai.tool.type": "function",
        "mcp.method.name": "tools/call",
    }
    error = "" if row.outcome == "ok" else row.error or row.outcome
    return SpanRecord(
        span_name("execute_tool", row.tool),
        "server",
        call.parent.trace_id,
        traced_span_id(row),
        call.parent.span_id,
        call.began,
        row.time,
        freeze_attributes(attributes, row, error),
        row.seq,
        error,
        is_parent_remote=True,
    )


def traced_span_id(row: Row) -> str:
    """The id of the span of a call that came from elsewhere, whose first row is ``row``."""
    return hash_id(SPAN_BYTES, row.time, row.seq, row.actor, row.tool, row.detail_json)


def agent_attributes(operation: str, agent: str) -> dict[str, SpanValue]:
    """What a span says of its ``operation`` and of the ``agent`` by its id."""
    name = bound_name(agent)
    return {"gen_ai.operation.name": operation, "gen_ai.agent.id": name, "gen_ai.agent.name": name}


def usage_attributes(used: UsageRecord) -> dict[str, SpanValue]:
    """What a span says of what was ``used``."""
    usage = used.usage
    counts = {
        # By the conventions cached tokens are input, too.
        "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read or None,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write or None,
    }
    attributes: dict[str, SpanValue] = {
        name: min(count, _LARGEST) for name, count in counts.items() if count is not None
    }
    if usage.priced_by and not usage.unpriced and isfinite(usage.cost):
        attributes["watchroom.usage.cost"] = usage.cost
    return attributes


def freeze_attributes(attributes: Mapping[str, SpanValue], row: Row, error: str) -> Mapping[str, SpanValue]:
    """``attributes`` without empty ones, with those of a span that is over by ``row`` with ``error``."""
    told = {name: value for name, value in attributes.items() if value not in ("", ())}
    if error:
        told["error.type"] = error
    return MappingProxyType({**told, "watchroom.row": row.seq})


def span_name(operation: str, subject: str) -> str:
    """The name of a span: its ``operation``, and of what (``subject``) where that is known."""
    return f"{operation} {bound_name(subject)}".rstrip()


def bound_name(text: str) -> str:
    """``text``, a name that somebody gave, as far as it is sent."""
    return escape_unstorable(text, _LONGEST_NAME)


def encode_messages(messages: Sequence[Mapping[str, Json]]) -> str:
    """The newest of ``messages`` as a JSON list, empty where there are none."""
    kept: list[str] = []
    size = 0
    for message in reversed(messages):
        kept.append(json.dumps(message, ensure_ascii=False))
        size += len(kept[-1])
        if size > LONGEST_MESSAGES:
            kept.pop()
            break
    return f"[{', '.join(reversed(kept))}]" if kept else ""


def hash_id(size: int, *parts: Json) -> str:
    """An id of ``size`` bytes in hexadecimal digits, the same for the same ``parts``."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[: 2 * size]
