"""What a client tells through the Agent Client Protocol, in our words. Pure.

The shapes are those of the protocol's ``session/update`` (version 1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from watchroom.clients.differences import MAX_CHARACTERS
from watchroom.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PlanStatus,
    PlanUpdated,
    TextStreamed,
    UsageTold,
)
from watchroom.clients.json_fields import amount_of, count_of, object_of, text_of
from watchroom.merge import unified_diff
from watchroom.model import Json, timestamp
from watchroom.rules.usage import UsageTotal

_PLAN: Final[tuple[PlanStatus, ...]] = ("pending", "in_progress", "completed")
_OVER: Final = ("completed", "failed")
_LONGEST_MESSAGE: Final = 500_000
"""Characters, after which what goes on is another message."""
_MOST_CALLS: Final = 10_000
"""So many calls that have not ended are known at a time."""
Fields: TypeAlias = Mapping[str, Json]


class AskedCall(NamedTuple):
    """A call that a client asks about: the ``events`` that come before the question, its ``id``, ``tool`` and
    ``arguments`` (JSON), and the ``difference`` that it would make, in unified form."""

    events: list[ClientEvent]
    id: str
    tool: str
    arguments: str
    difference: str


class AcpTranslator:
    """Translates the updates of one session, in their order.

    A message's pieces are told as they come, and the whole message once something else follows. ``model`` is
    the name of the model, empty where it is not known.
    """

    def __init__(self, model: str = "") -> None:
        self._model = model
        self._message = ""
        self._length = 0
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[str, dict[str, Json]] = {}
        self._begun: set[str] = set()
        self._cost = 0.0
        self._told_cost = 0.0
        self._has_cost = False

    def translate(self, update: Fields) -> list[ClientEvent]:
        """What ``update``, that of a ``session/update``, tells."""
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            return self._add_text(update)
        if kind == "agent_thought_chunk":
            before = self._complete() if self._text or self._length > _LONGEST_MESSAGE else []
            self._thought.append(_text(update, "content"))
            self._length += len(self._thought[-1])
            return before
        if kind in ("tool_call", "tool_call_update"):
            return [*self._complete(), *self._follow_call(update)]
        if kind == "plan":
            return [*self._complete(), _plan(update)]
        if kind == "usage_update":
            cost = object_of(update, "cost")
            if cost.get("currency") == "USD" and (amount := amount_of(cost, "amount")) is not None:
                self._cost, self._has_cost = amount, True
        return []

    def describe_call(self, call: Fields) -> AskedCall:
        """What a ``session/request_permission`` about ``call`` asks."""
        events = [*self._complete(), *self._follow_call(call, is_certain=True)]
        known = self._calls.get(text_of(call, "toolCallId"), {})
        difference = "\n".join(_differences(known))[:MAX_CHARACTERS]
        return AskedCall(events, text_of(call, "toolCallId"), _tool(known), _arguments(known), difference)

    def end_turn(self, response: Fields) -> list[ClientEvent]:
        """Return what ``response``, to a ``session/prompt``, reports of the turn before it ended: the rest of
        its message, and what it used."""
        events = self._complete()
        usage = object_of(response, "usage")
        cost, self._told_cost = self._cost - self._told_cost, self._cost
        used = UsageTotal(
            count_of(usage, "inputTokens"),
            count_of(usage, "outputTokens"),
            count_of(usage, "cachedReadTokens"),
            count_of(usage, "cachedWriteTokens"),
            max(0.0, cost),
            priced_by="client" if self._has_cost else "",
        )
        if used.tokens or used.cost:
            events.append(UsageTold(used, self._model))
        else:
            events.extend(_usage_of_models(response))
        return events

    def finish(self) -> list[ClientEvent]:
        """The message that was being told when the client ended, as far as it came."""
        return self._complete()

    def _add_text(self, update: Fields) -> list[ClientEvent]:
        message, text = text_of(update, "messageId"), _text(update, "content")
        is_new = message != self._message or self._length > _LONGEST_MESSAGE
        before = self._complete() if self._text and is_new else []
        self._message = message
        self._length += len(text)
        self._text.append(text)
        return [*before, TextStreamed(text)] if text else before

    def _complete(self) -> list[ClientEvent]:
        """The message that was being told, whole."""
        text, thought = "".join(self._text), "".join(self._thought)
        self._text.clear()
        self._thought.clear()
        self._length = 0
        return [MessageCompleted(text, thought, self._model)] if text.strip() or thought.strip() else []

    def _follow_call(self, update: Fields, *, is_certain: bool = False) -> list[ClientEvent]:
        """A call begins, or goes on. What it is may come with a later update: it is told once its input is
        known, it runs, or a person is asked about it."""
        call_id = text_of(update, "toolCallId")
        if not call_id or (call_id not in self._calls and len(self._calls) >= _MOST_CALLS):
            return []
        known = self._calls.setdefault(call_id, {})
        known.update((name, value) for name, value in update.items() if value is not None)
        status = known.get("status")
        events: list[ClientEvent] = []
        is_known = is_certain or bool(known.get("rawInput")) or status in ("in_progress", *_OVER)
        if call_id not in self._begun and is_known:
            self._begun.add(call_id)
            events.append(CallStarted(call_id, _tool(known), _arguments(known)))
        if status in _OVER:
            events.append(CallFinished(call_id, _result(known), status == "failed"))
            del self._calls[call_id]
            self._begun.discard(call_id)
        return events


def describe_error(message: str, data: Json) -> str:
    """Return the ``message`` of an error of the protocol with all that its ``data`` add, such as when a limit
    ends."""
    if isinstance(data, Mapping):
        said = ", ".join(f"{name}: {_readable(name, value)}" for name, value in data.items())
    else:
        said = "" if data is None else _readable("", data)
    return f"{message} ({said})" if said else message


def _readable(name: str, value: Json) -> str:
    if "reset" in name.lower() and type(value) is int and 10**9 < value < 10**11:
        # Seconds since the epoch.
        return timestamp(value * 10**9)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _usage_of_models(response: Fields) -> list[ClientEvent]:
    """What each model used, as Gemini tells it: what it read from a cache is in its count of input."""
    told: list[ClientEvent] = []
    for each in _objects(object_of(object_of(response, "_meta"), "quota"), "model_usage"):
        counts = object_of(each, "token_count")
        used = UsageTotal(count_of(counts, "input_tokens"), count_of(counts, "output_tokens"))
        if used.tokens:
            told.append(UsageTold(used, text_of(each, "model")))
    return told


def _plan(update: Fields) -> PlanUpdated:
    entries = update.get("entries")
    listed = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    found: list[tuple[str, PlanStatus]] = []
    for entry in listed[:1000]:
        if isinstance(entry, Mapping):
            status = next((each for each in _PLAN if each == entry.get("status")), _PLAN[0])
            found.append((text_of(entry, "content"), status))
    return PlanUpdated(tuple(found))


def _tool(call: Fields) -> str:
    """The tool's name where the client says it, else what kind of tool it is."""
    claude = object_of(object_of(call, "_meta"), "claudeCode")
    return text_of(claude, "toolName") or text_of(call, "kind") or "tool"


def _arguments(call: Fields) -> str:
    """What a call is made with, as JSON: its input, or its title where there is none."""
    given = call.get("rawInput")
    arguments: dict[str, Json] = dict(given) if isinstance(given, Mapping) else {}
    if not arguments:
        arguments["title"] = text_of(call, "title")
    return json.dumps(arguments, ensure_ascii=False)


def _differences(call: Fields) -> list[str]:
    return [
        unified_diff(text_of(each, "oldText"), text_of(each, "newText"), "-", text_of(each, "path"))
        for each in _contents(call)
        if each.get("type") == "diff"
    ]


def _result(call: Fields) -> str:
    """What a call gave: its output as JSON or text."""
    output = call.get("rawOutput")
    if isinstance(output, str):
        return output
    if output is not None:
        return json.dumps(output, ensure_ascii=False)
    return "\n".join(_text(each, "content") for each in _contents(call) if each.get("type") == "content")


def _contents(call: Fields) -> list[Fields]:
    return _objects(call, "content")


def _objects(fields: Fields, name: str) -> list[Fields]:
    given = fields.get(name)
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
    return [each for each in listed if isinstance(each, Mapping)]


def _text(fields: Fields, name: str) -> str:
    return text_of(object_of(fields, name), "text")
