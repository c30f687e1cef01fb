"""What Claude Code tells by its hooks and in its transcripts, in our words. Pure.

The transcript is not documented: what is not understood is passed over. It has a line for each block of a
message, each with what the message used so far: `MessageUsage` counts a message once. It is behind at
PreToolUse, and has no call that the client refuses by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from watchroom.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
    UsageTold,
)
from watchroom.clients.json_fields import count_of, dump, object_of, text_of
from watchroom.model import Json
from watchroom.rules.usage import UsageTotal

_FAILED: Final = ("error", "message")
_SYNTHETIC: Final = "<synthetic>"
"""The model of what the client itself puts in, where a turn was cut off."""


def translate_hook(event: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    """What the hook ``event`` tells, in our words; nothing where it tells of nothing that is kept."""
    name, call = text_of(event, "hook_event_name"), text_of(event, "tool_use_id")
    if name == "UserPromptSubmit":
        return (PromptSubmitted(text_of(event, "prompt"), key=_key("prompt", text_of(event, "prompt_id"))),)
    if name == "MessageDisplay":
        return (TextStreamed(text_of(event, "delta")),)
    if name == "PreToolUse" and call:
        return (CallStarted(call, text_of(event, "tool_name"), dump(event.get("tool_input"))),)
    if name == "PostToolUse" and call:
        return (_finished(event, _result(event.get("tool_response"))),)
    if name == "PostToolUseFailure" and call:
        said = next((text for field in _FAILED if (text := text_of(event, field))), "")
        return (_finished(event, said)._replace(is_error=True),)
    if name == "Stop" and not event.get("background_tasks"):
        return (TurnEnded(),)
    if name in ("SessionEnd", "SubagentStop"):
        return (SessionEnded("done", text_of(event, "reason")),)
    return ()


def _finished(event: Mapping[str, Json], result: str) -> CallFinished:
    return CallFinished(
        text_of(event, "tool_use_id"),
        result,
        tool=text_of(event, "tool_name"),
        arguments=dump(event.get("tool_input")),
        cwd=text_of(event, "cwd"),
    )


def translate_line(line: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    """What the ``line`` of a transcript tells: what the model said and used, and how calls ended."""
    message = object_of(line, "message")
    is_own = line.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC
    if line.get("type") == "assistant" and not is_own:
        return (*_message_events(message), *_usage_events(message))
    if line.get("type") == "user":
        return tuple(_results(message))
    return ()


def _message_events(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    key, model = text_of(message, "id"), text_of(message, "model")
    content = message.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping) and block.get("type") == "text" and text_of(block, "text").strip():
            yield MessageCompleted(text_of(block, "text"), model=model, key=_key("said", key))


def _usage_events(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    usage, key = object_of(message, "usage"), text_of(message, "id")
    used = UsageTotal(
        count_of(usage, "input_tokens"),
        count_of(usage, "output_tokens"),
        count_of(usage, "cache_read_input_tokens"),
        count_of(usage, "cache_creation_input_tokens"),
    )
    if used.tokens and key:
        yield UsageTold(used, text_of(message, "model"), key)


def _results(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    content = message.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            call = text_of(block, "tool_use_id")
            if call:
                yield CallFinished(call, _result(block.get("content")), block.get("is_error") is True)


def _result(given: Json) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _key(kind: str, key: str) -> str:
    return f"{kind} {key}" if key else ""
