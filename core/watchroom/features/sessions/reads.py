"""Sessions of an agent: their steps, the content of a step, and the text that the model is writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import RowText, find_content
from watchroom.kernel.rules.details import get_list, get_object, get_text
from watchroom.model import STREAM, Json, Row, parse_object
from watchroom.validation import escape_unstorable

MAX_TEXT: Final = 10_000
"""Maximum characters of a text in a message."""
_MAX_CODE: Final = 100
_FAILED: Final = "_OTHER"
"""OpenTelemetry's name for other errors."""
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Matches error codes. Other errors are texts that a tool wrote."""
MAX_STEPS: Final = 1000
"""The default number of steps that `read_steps` returns."""
MAX_PIECES: Final = 500
"""Maximum number of newest pieces of an unfinished answer that are read."""


class StepCall(NamedTuple):
    """A call by a model: its id, the tool, and the arguments as the model wrote them."""

    id: str
    tool: str
    arguments: str


class StepContent(NamedTuple):
    """The content of a step.

    - ``calls``: the calls that the model made.
    - ``results``: the ids and results of calls.
    - ``given``, ``said``: the messages for the model and from it, by OpenTelemetry's semantic conventions.
    - ``is_answer``: whether it is an answer of a model.
    - ``is_prompt``: whether it has a message of a user.
    - ``requested_model``, ``finish_reason``: the model and the reason in the call of the model.
    - ``error``: the code of the error that ended the step.
    - ``session_model``: the model with which the session began.
    """

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
    """Return the content of a step, parsed from the ``text`` of its row. Damaged parts are left out."""
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
        finish_reason=escape_unstorable(get_text(answer, "finish_reason"), _MAX_CODE),
        error=escape_unstorable(get_text(failed, "code"), _MAX_CODE),
        session_model=get_text(get_object(step, "metadata"), "model"),
    )


def call_error(result: str) -> str:
    """Return the error code in the ``result`` of a call, empty if it succeeded."""
    if not result.startswith("{") or '"success"' not in result:
        return ""
    fields = parse_object(result) or {}
    if fields.get("success") is not False:
        return ""
    code = get_text(fields, "error")
    return code if _CODE.fullmatch(code) else _FAILED


def _calls(message: Mapping[str, Json]) -> Iterator[StepCall]:
    for call in _objects(message, "tool_calls"):
        function = get_object(call, "function")
        yield StepCall(get_text(call, "id"), get_text(function, "name"), get_text(function, "arguments"))


def _text_parts(content: str) -> Iterator[Json]:
    if content:
        yield {"type": "text", "content": escape_unstorable(content, MAX_TEXT)}


def _call_part(call: StepCall) -> Json:
    arguments = escape_unstorable(call.arguments, MAX_TEXT)
    return {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": arguments}


def _result_part(id_: str, content: str) -> Json:
    return {"type": "tool_call_response", "id": id_, "response": escape_unstorable(content, MAX_TEXT)}


def _objects(among: Mapping[str, Json], name: str) -> Iterator[Mapping[str, Json]]:
    return (each for each in get_list(among, name) if isinstance(each, dict))


class Steps(NamedTuple):
    """Steps of a session, oldest first, each with its text.

    - ``more``: whether there are later steps.
    - ``saying``: the model's text since the last step; empty if there are later steps.
    """

    steps: tuple[RowText, ...]
    more: bool
    saying: str = ""


def list_sessions(journal: Journal, agent: str, *, as_of: int) -> tuple[Row, ...]:
    """Return the newest step of each session of ``agent`` at row ``as_of``, sorted by row.

    `watchroom.kernel.rules.details.StepDetail` parses the detail of a step. Raise `JournalError`.
    """
    heads = journal.heads("session", f"{agent}/", as_of=as_of)
    return tuple(sorted(heads, key=lambda row: row.seq))


def read_steps(
    journal: Journal, session: str, *, as_of: int, after: int = 0, limit: int = MAX_STEPS
) -> Steps:
    """Return the steps of a session. Raise `JournalError`.

    - ``session``: its path, ``AGENT/ID``.
    - ``as_of``: the last row to read.
    - ``after``: the version of the step after which to begin, default 0.
    - ``limit``: the maximum number of steps, default 1,000.
    """
    rows = journal.history("session", session, after_version=after, limit=limit + 1)
    known = [row for row in rows if row.seq <= as_of]
    steps = tuple(RowText(row, find_content(journal, row)) for row in known[:limit])
    more = len(known) > limit
    return Steps(steps, more, "" if more else read_stream(journal, session, as_of=as_of))


def read_stream(journal: Journal, session: str, *, as_of: int) -> str:
    """Return the text that the model of ``session`` wrote since its last step, up to row ``as_of``. Raise
    `JournalError`."""
    head = journal.head("session", session, as_of=as_of)
    agent = session.partition("/")[0]
    after = head.seq if head is not None else 0
    pieces = journal.notes("session", session, agent, STREAM, after=after, until=as_of, limit=MAX_PIECES)
    return "".join(find_content(journal, row) or "" for row in reversed(pieces))
