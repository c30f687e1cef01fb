"""What Codex tells by its hooks and in its rollout files, in our words. Pure.

The rollout file is not documented: what is not understood is passed over. Usage comes from the hook after
each request to the model; what was read from the cache is in its count of input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from watchroom.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TurnEnded,
    UsageTold,
)
from watchroom.clients.json_fields import count_of, dump, object_of, text_of
from watchroom.model import Json
from watchroom.rules.usage import UsageTotal


def translate_hook(event: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    """What the hook ``event`` tells, in our words; nothing where it tells of nothing that is kept."""
    name, call = text_of(event, "hook_event_name"), text_of(event, "tool_use_id")
    if name == "UserPromptSubmit":
        turn = text_of(event, "turn_id")
        return (PromptSubmitted(text_of(event, "prompt"), key=f"prompt {turn}" if turn else ""),)
    if name == "PreToolUse" and call:
        return (CallStarted(call, text_of(event, "tool_name"), dump(event.get("tool_input"))),)
    if name == "PostToolUse" and call:
        given = event.get("tool_response")
        said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        return (CallFinished(call, said, tool=tool, arguments=arguments, cwd=text_of(event, "cwd")),)
    if name == "PostModelRequest":
        return _usage_events(event)
    if name in ("Stop", "Interrupt"):
        return (TurnEnded("" if name == "Stop" else "interrupted"),)
    if name in ("SessionEnd", "SubagentStop"):
        return (SessionEnded("done", text_of(event, "reason")),)
    return ()


def translate_line(line: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    """What the ``line`` of a rollout file tells: what the model said."""
    payload = object_of(line, "payload")
    is_message = line.get("type") == "response_item" and payload.get("type") == "message"
    if not is_message or payload.get("role") != "assistant":
        return ()
    content = payload.get("content")
    blocks = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    text = "".join(text_of(block, "text") for block in blocks if block.get("type") == "output_text")
    key = text_of(payload, "id")
    return (MessageCompleted(text, key=f"said {key}" if key else ""),) if text.strip() else ()


def _usage_events(event: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    usage = object_of(event, "token_usage")
    cached, written = count_of(usage, "cached_input_tokens"), count_of(usage, "cache_write_input_tokens")
    uncached = max(0, count_of(usage, "input_tokens") - cached - written)
    used = UsageTotal(uncached, count_of(usage, "output_tokens"), cached, written)
    if not used.tokens:
        return ()
    return (UsageTold(used, text_of(event, "model"), _request_key(event, used)),)


def _request_key(event: Mapping[str, Json], used: UsageTotal) -> str:
    """What request to the model ``event`` tells of, as far as it says: it has no id. Told twice, it has the
    same turn and the same counts."""
    turn = text_of(event, "turn_id")
    counts = "-".join(str(each) for each in (used.input, used.cache_read, used.cache_write, used.output))
    return f"request {turn} {counts}" if turn else ""
