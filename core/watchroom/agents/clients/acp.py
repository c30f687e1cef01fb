"""Translates a client's reports in the Agent Client Protocol into client events. Pure.

The input has the form of the protocol's ``session/update`` (version 1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from watchroom.agents.clients.calls import MAX_DIFFERENCE
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PlanStatus,
    PlanUpdated,
    TextStreamed,
    UsageAdded,
)
from watchroom.agents.clients.json_fields import amount_of, count_of, object_of, text_of
from watchroom.algorithms.merge import unified_diff
from watchroom.features.budgets.rows import UsageTotal
from watchroom.model import Json, timestamp

_PLAN: Final[tuple[PlanStatus, ...]] = ("pending", "in_progress", "completed")
_OVER: Final = ("completed", "failed")
_MAX_MESSAGE: Final = 500_000
"""Maximum characters of a message. Further text begins another message."""
_MAX_CALLS: Final = 10_000
"""Maximum number of unfinished calls that are kept."""
_MAX_ROUNDING: Final = 1e-6
"""Maximum US dollars by which a recorded cost exceeds the reported cost, because rows round it."""
Fields: TypeAlias = Mapping[str, Json]


class AskedCall(NamedTuple):
    """A call that a client requests approval for.

    - ``events``: the events that the client reported before the question
    - ``id``, ``tool``, ``arguments``: the call, its arguments as JSON
    - ``difference``: the changes that the call would make, as a unified diff
    """

    events: list[ClientEvent]
    id: str
    tool: str
    arguments: str
    difference: str


class AcpTranslator:
    """Translates the updates of one session. Takes them in order.

    The pieces of a message are reported as they arrive. The whole message is reported when another update
    follows.

    - ``model``: the name of the model, empty if unknown
    - ``tool_name``: the path of field names to a tool's name in the report of a call, empty if there is none
    - ``cost``: the recorded cost of a resumed session in US dollars. Clients report the cost since its start
    """

    def __init__(self, model: str = "", tool_name: Sequence[str] = (), cost: float = 0.0) -> None:
        self._model = model
        self._tool_name = tool_name
        self._message = ""
        self._length = 0
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[str, dict[str, Json]] = {}
        self._begun: set[str] = set()
        self._cost = self._reported_cost = cost
        self._has_cost = False

    def translate(self, update: Fields) -> list[ClientEvent]:
        """Return the events in ``update``, the content of a ``session/update``."""
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            return self._add_text(update)
        if kind == "agent_thought_chunk":
            before = self._complete() if self._text or self._length > _MAX_MESSAGE else []
            self._thought.append(_text(update, "content"))
            self._length += len(self._thought[-1])
            return before
        if kind in ("tool_call", "tool_call_update"):
            return [*self._complete(), *self._follow_call(update)]
        if kind == "plan":
            return [*self._complete(), _plan(update)]
        if kind == "user_message_chunk":
            return self._complete()
        if kind == "usage_update":
            cost = object_of(update, "cost")
            if cost.get("currency") == "USD" and (amount := amount_of(cost, "amount")) is not None:
                if not self._has_cost and amount < self._reported_cost - _MAX_ROUNDING:
                    # This client counts anew after a restart.
                    self._reported_cost = 0.0
                self._cost, self._has_cost = amount, True
        return []

    def describe_call(self, call: Fields) -> AskedCall:
        """Return the call in a ``session/request_permission``."""
        events = [*self._complete(), *self._follow_call(call, is_certain=True)]
        known = self._calls.get(text_of(call, "toolCallId"), {})
        difference = "\n".join(_differences(known))[:MAX_DIFFERENCE]
        return AskedCall(
            events, text_of(call, "toolCallId"), _tool(known, self._tool_name), _arguments(known), difference
        )

    def end_turn(self, response: Fields) -> list[ClientEvent]:
        """Return the events at the end of a turn: the rest of its message, and its usage. ``response``: the
        response to ``session/prompt``."""
        events = self._complete()
        usage = object_of(response, "usage")
        cost, self._reported_cost = self._cost - self._reported_cost, self._cost
        used = UsageTotal(
            count_of(usage, "inputTokens"),
            count_of(usage, "outputTokens"),
            count_of(usage, "cachedReadTokens"),
            count_of(usage, "cachedWriteTokens"),
            max(0.0, cost),
            priced_by="client" if self._has_cost else "",
        )
        if used.tokens or used.cost:
            events.append(UsageAdded(used, self._model))
        else:
            events.extend(_usage_of_models(response))
        return events

    def finish(self) -> list[ClientEvent]:
        """Return the incomplete message of an ended client."""
        return self._complete()

    def _add_text(self, update: Fields) -> list[ClientEvent]:
        message, text = text_of(update, "messageId"), _text(update, "content")
        is_new = message != self._message or self._length > _MAX_MESSAGE
        before = self._complete() if self._text and is_new else []
        self._message = message
        self._length += len(text)
        self._text.append(text)
        return [*before, TextStreamed(text)] if text else before

    def _complete(self) -> list[ClientEvent]:
        """Return the current message, and begin another."""
        text, thought = "".join(self._text), "".join(self._thought)
        self._text.clear()
        self._thought.clear()
        self._length = 0
        return [MessageCompleted(text, thought, self._model)] if text.strip() or thought.strip() else []

    def _follow_call(self, update: Fields, *, is_certain: bool = False) -> list[ClientEvent]:
        """Return the events in ``update`` about a call.

        Its tool and input may arrive with a later update. A call is reported once its input is known, it is
        running, or a person is asked about it (``is_certain``).
        """
        call_id = text_of(update, "toolCallId")
        if not call_id or (call_id not in self._calls and len(self._calls) >= _MAX_CALLS):
            return []
        known = self._calls.setdefault(call_id, {})
        known.update((name, value) for name, value in update.items() if value is not None)
        status = known.get("status")
        events: list[ClientEvent] = []
        is_known = is_certain or bool(known.get("rawInput")) or status in ("in_progress", *_OVER)
        if call_id not in self._begun and is_known:
            self._begun.add(call_id)
            events.append(CallStarted(call_id, _tool(known, self._tool_name), _arguments(known)))
        if status in _OVER:
            events.append(CallFinished(call_id, _result(known), status == "failed"))
            del self._calls[call_id]
            self._begun.discard(call_id)
        return events


class ReplayFilter:
    """Recognizes the past of a resumed session, which its client reports again.

    A client may still report the past after its first prompt. Its messages have no reliable ids, so they are
    recognized by their texts, in their order.

    - ``messages``: the texts of the model's messages in the session, in order
    - ``calls``: the ids of the calls in the session
    """

    def __init__(self, messages: Sequence[str] = (), calls: Iterable[str] = ()) -> None:
        self._messages = messages
        self._calls = frozenset(calls)
        self._translator = AcpTranslator()
        self._next = 0
        """The index of the next message of the past."""
        self._has_past = False
        """Whether the client reported a message or call of the past before the first prompt."""
        self._held: list[ClientEvent] = []
        """The newest events, if later events decide whether they report the past."""
        self.count = 0
        """The number of updates before the first prompt."""

    def skip(self, update: Fields) -> None:
        """Take ``update`` from before the first prompt, so it certainly reports the past."""
        self.count += 1
        self._find(self._translator.translate(update))

    def remove_past(self, event: ClientEvent) -> list[ClientEvent]:
        """Take ``event`` from after the first prompt. Return the events that are known to be new.

        Takes the events in order. An event that may report the past is held until a later event decides.
        """
        self._held.append(event)
        is_past = self._is_past(event)
        if is_past is None:
            return []
        held, self._held = self._held, []
        return [] if is_past else held

    def _is_past(self, event: ClientEvent) -> bool | None:
        """Return whether the held events, of which ``event`` is the newest, report the past. None if a later
        event decides."""
        if isinstance(event, CallStarted | CallFinished):
            return event.id in self._calls
        if not isinstance(event, TextStreamed | MessageCompleted | PlanUpdated):
            return False
        self._find(self._translator.finish())
        # A client that reports no past before its first prompt may repeat its own words.
        if not self._has_past or self._next == len(self._messages):
            return False
        expected = self._messages[self._next]
        if isinstance(event, TextStreamed):
            text = "".join(each.text for each in self._held if isinstance(each, TextStreamed))
            # Models put blank lines before their calls.
            if expected.lstrip().startswith(text.lstrip()):
                return None
        elif isinstance(event, PlanUpdated) or not event.text.strip():
            # The event is a plan or a thought.
            return None
        elif event.text == expected:
            self._next += 1
            return True
        # A new message follows the past.
        self._next = len(self._messages)
        return False

    def _find(self, events: Iterable[ClientEvent]) -> None:
        """Find the messages among ``events`` in the past, and continue after them."""
        for event in events:
            if isinstance(event, CallStarted | CallFinished):
                self._has_past = self._has_past or event.id in self._calls
            elif isinstance(event, MessageCompleted) and event.text in self._messages[self._next :]:
                self._next = self._messages.index(event.text, self._next) + 1
                self._has_past = True


def describe_error(message: str, data: Json) -> str:
    """Return the ``message`` of a protocol error together with its ``data``, such as the reset time of a
    limit."""
    if isinstance(data, Mapping):
        details = ", ".join(f"{name}: {_readable(name, value)}" for name, value in data.items())
    else:
        details = "" if data is None else _readable("", data)
    return f"{message} ({details})" if details else message


def _readable(name: str, value: Json) -> str:
    if "reset" in name.lower() and type(value) is int and 10**9 < value < 10**11:
        # The time is in seconds since the epoch.
        return timestamp(value * 10**9)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _usage_of_models(response: Fields) -> list[ClientEvent]:
    """Return the usage of each model as reported by Gemini. Its input count includes cached tokens."""
    reported: list[ClientEvent] = []
    for each in _objects(object_of(object_of(response, "_meta"), "quota"), "model_usage"):
        counts = object_of(each, "token_count")
        used = UsageTotal(count_of(counts, "input_tokens"), count_of(counts, "output_tokens"))
        if used.tokens:
            reported.append(UsageAdded(used, text_of(each, "model")))
    return reported


def _plan(update: Fields) -> PlanUpdated:
    entries = update.get("entries")
    listed = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    found: list[tuple[str, PlanStatus]] = []
    for entry in listed[:1000]:
        if isinstance(entry, Mapping):
            status = next((each for each in _PLAN if each == entry.get("status")), _PLAN[0])
            found.append((text_of(entry, "content"), status))
    return PlanUpdated(tuple(found))


def _tool(call: Fields, names: Sequence[str]) -> str:
    """Return the tool's name in the field at the path ``names``. If the client does not report it, return its
    kind."""
    fields = call
    for name in names[:-1]:
        fields = object_of(fields, name)
    own = text_of(fields, names[-1]) if names else ""
    return own or text_of(call, "kind") or "tool"


def _arguments(call: Fields) -> str:
    """Return the arguments of a call as JSON: its input, or its title if it has no input."""
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
    """Return the output of a call as JSON or text."""
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
