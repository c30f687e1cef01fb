"""What the content of a session's step says of calls and answers. Pure, and never refuses: what is damaged
says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from watchroom.model import Json, parse_object
from watchroom.rules.details import get_list, get_object, get_text
from watchroom.validation import escape_unstorable

LONGEST_TEXT: Final = 10_000
"""Characters of one text that are given."""
_LONGEST_CODE: Final = 100
_FAILED: Final = "_OTHER"
"""What OpenTelemetry calls an error that has no name."""
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Anything else is text that a tool has written."""


class StepCall(NamedTuple):
    """A call that a model made: its id, the tool, and the arguments as the model wrote them."""

    id: str
    tool: str
    arguments: str


class StepContent(NamedTuple):
    """What a step says: ``calls`` that a model made, ``results`` of calls by their ids; whether it
    ``is_answer`` of a model or ``is_prompt``, something that a model is to answer. ``given`` are the messages
    for the model and ``said`` those of it, by the semantic conventions of OpenTelemetry. ``error`` is the
    code of what ended the step, ``session_model`` what the session began with."""

    calls: tuple[StepCall, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    given: tuple[Mapping[str, Json], ...] = ()
    said: tuple[Mapping[str, Json], ...] = ()
    is_answer: bool = False
    is_prompt: bool = False
    requested_model: str = ""
    finish_reason: str = ""
    error: str = ""
    session_model: str = ""


def parse_step(text: str) -> StepContent:
    """What ``text`` says, the content of a session's row."""
    step = parse_object(text) or {}
    calls: list[StepCall] = []
    results: list[tuple[str, str]] = []
    given: list[Mapping[str, Json]] = []
    said: list[Mapping[str, Json]] = []
    is_prompt = False
    for message in _objects(step, "messages"):
        role, content = get_text(message, "role"), get_text(message, "content")
        if role == "assistant":
            made = [*_calls(message)]
            calls += made
            said.append({"role": role, "parts": [*_text_parts(content), *map(_call_part, made)]})
        elif role == "tool":
            id_ = get_text(message, "tool_call_id")
            results.append((id_, content))
            given.append({"role": role, "parts": [_result_part(id_, content)]})
        elif role in ("system", "user"):
            is_prompt = is_prompt or role == "user"
            given.append({"role": role, "parts": [*_text_parts(content)]})
    events = {get_text(event, "type"): event for event in _objects(step, "events")}
    answer, failed = events.get("llm_result", {}), get_object(events.get("error", {}), "error")
    return StepContent(
        tuple(calls),
        tuple(results),
        tuple(given),
        tuple(said),
        is_answer="llm_result" in events or "llm_start" in events,
        is_prompt=is_prompt,
        requested_model=get_text(events.get("llm_start", {}), "model"),
        finish_reason=escape_unstorable(get_text(answer, "finish_reason"), _LONGEST_CODE),
        error=escape_unstorable(get_text(failed, "code"), _LONGEST_CODE),
        session_model=get_text(get_object(step, "metadata"), "model"),
    )


def call_error(result: str) -> str:
    """The code of what went wrong in a call by its ``result``, empty where nothing did."""
    if not result.startswith("{") or '"success"' not in result:
        return ""
    told = parse_object(result) or {}
    if told.get("success") is not False:
        return ""
    code = get_text(told, "error")
    return code if _CODE.fullmatch(code) else _FAILED


def _calls(message: Mapping[str, Json]) -> Iterator[StepCall]:
    for call in _objects(message, "tool_calls"):
        function = get_object(call, "function")
        yield StepCall(get_text(call, "id"), get_text(function, "name"), get_text(function, "arguments"))


def _text_parts(content: str) -> Iterator[Json]:
    if content:
        yield {"type": "text", "content": escape_unstorable(content, LONGEST_TEXT)}


def _call_part(call: StepCall) -> Json:
    arguments = escape_unstorable(call.arguments, LONGEST_TEXT)
    return {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": arguments}


def _result_part(id_: str, content: str) -> Json:
    return {"type": "tool_call_response", "id": id_, "response": escape_unstorable(content, LONGEST_TEXT)}


def _objects(among: Mapping[str, Json], name: str) -> Iterator[Mapping[str, Json]]:
    return (each for each in get_list(among, name) if isinstance(each, dict))
