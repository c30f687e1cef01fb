"""Requests of agents to people, and the answers (RUN-people). Pure.

An agent asks for approval of tool calls (``approve``), for a text (``prompt``), or for a choice (``select``).
`check_answer` checks each answer against its request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from watchroom import validation
from watchroom.errors import InvalidAnswer, JournalDamaged
from watchroom.model import (
    ANSWER,
    WITHDRAW,
    Json,
    RequestKind,
    Row,
    frozen_json,
    is_nested_deeper,
    parse_object,
)

_Record = TypeVar("_Record")
Policy: TypeAlias = Literal["always", "never", "ask"]
"""Whether a tool can be called: always, never, or only if a person approves the call."""

RequestState: TypeAlias = Literal["open", "answered", "expired", "cancelled", "withdrawn"]
"""The state of a request.

- ``cancelled``: a person cancelled the session that asked.
- ``withdrawn``: the answer is no longer needed.
"""

ZONE: Final = "request"
"""The zone of requests and their ends."""
DIFFERENCE: Final = "difference"
"""The field of a request's metadata with the call's changes to files outside of Watchroom, as a unified
diff."""
POLICY_RULE: Final = "policy_rule"
"""The field of a request's metadata, and of a refused call's detail, with the policy rule that asks people or
refuses the call."""
CALL_RESULT: Final = "end_call"
"""The tool of a note at a request's path: the result of the call that the request is about."""
MAX_NESTING: Final = 100
"""Maximum nesting of arrays and objects in a call's arguments."""
CLOCK_SECONDS: Final = 0.5
"""Seconds between two reads of the journal's clock while a request with a deadline is open. The clock can
jump when it is set, or when a machine wakes up."""
_MAX_TEXT: Final = 100_000
"""Maximum characters of a text in a request or an answer."""
_STRICTNESS: Final[Sequence[Policy]] = ("always", "ask", "never")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that waits for approval.

    - ``arguments``: the JSON that the model wrote.
    - ``checksum``: the checksum of the arguments and of the text that the call would write at the time of the
      request. An approval is valid for this only. Empty if the approval covers only the arguments.
    - ``asked_again``: the call was approved before, but the text that it would write has changed.
    - ``notice``: a text for the model about the approval; empty for none.
    """

    id: str
    name: str
    arguments: str
    checksum: str = ""
    asked_again: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A choice. ``label``: the text for people. ``value``: the value for the agent."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request of an agent to people.

    - ``prompt``: the question.
    - ``calls``: the calls to approve.
    - ``options``: the choices.
    - ``multi``: whether several choices can be made.
    - ``metadata``: a JSON object.
    - ``expires``: the deadline in nanoseconds since the epoch, None for no deadline.
    """

    kind: RequestKind
    prompt: str = ""
    calls: tuple[PendingCall, ...] = ()
    options: tuple[Option, ...] = ()
    multi: bool = False
    metadata: Mapping[str, object] = field(default_factory=dict)
    expires: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", frozen_json(cast("Json", self.metadata)))


@dataclass(frozen=True, slots=True)
class CallDecision:
    """The decision on one call.

    - ``reason``: a text for the model, for approved and rejected calls.
    - ``arguments``: JSON that replaces the model's arguments, None to keep them.
    """

    call_id: str
    approved: bool
    reason: str = ""
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer.

    - ``decisions``: the decisions on calls.
    - ``text``: the answer to a question, or the reason why it was declined.
    - ``values``: the choices.
    - ``expired``: nobody answered in time.
    - ``declined``: the person declined a question or choice.
    """

    decisions: tuple[CallDecision, ...] = ()
    text: str = ""
    values: tuple[str, ...] = ()
    expired: bool = False
    declined: bool = False


def check_answer(request: Request, answer: Answer) -> None:
    """Raise `InvalidAnswer` with the rule if ``answer`` is not valid for ``request``."""
    problem = {"approve": _approval_problem, "prompt": _reply_problem, "select": _choice_problem}
    broken = problem[request.kind](request, answer)
    if broken:
        raise InvalidAnswer(rule=broken)


def _approval_problem(request: Request, answer: Answer) -> str | None:
    if answer.text or answer.values or answer.declined:
        return "answer_approve"
    asked = [call.id for call in request.calls]
    if sorted(decision.call_id for decision in answer.decisions) != sorted(asked):
        return "answer_each_call"
    for decision in answer.decisions:
        if decision.arguments is not None and not _is_object(decision.arguments):
            return "answer_arguments"
    return None


def _reply_problem(request: Request, answer: Answer) -> str | None:
    if answer.decisions or answer.values:
        return "answer_prompt"
    if not (answer.text.strip() or answer.declined):
        return "answer_empty"
    return "answer_length" if len(answer.text) > _MAX_TEXT else None


def _choice_problem(request: Request, answer: Answer) -> str | None:
    if answer.declined and not answer.decisions and not answer.values:
        return "answer_length" if len(answer.text) > _MAX_TEXT else None
    if answer.decisions or answer.text or answer.declined:
        return "answer_select"
    offered = {option.value for option in request.options}
    if not answer.values or not offered.issuperset(answer.values):
        return "answer_offered"
    if len(set(answer.values)) != len(answer.values) or (len(answer.values) > 1 and not request.multi):
        return "answer_one"
    return None


def request_state(ended: Row | None) -> RequestState:
    """Return the state of a request. ``ended``: the row that closed it, None if it is open."""
    if ended is None:
        return "open"
    if ended.tool == ANSWER:
        return "answered"
    if ended.detail.get("outcome") == "expired":
        return "expired"
    return "cancelled" if ended.detail.get("by") else "withdrawn"


def ends_request(row: Row) -> bool:
    """Whether ``row`` closes the request at its path."""
    return row.zone == "request" and row.outcome == "ok" and row.tool in (ANSWER, WITHDRAW)


def has_expired(expires: int | None, now: int) -> bool:
    """Whether ``now`` is after the deadline ``expires``. Both are in nanoseconds since the epoch; None means
    no deadline."""
    return expires is not None and now > expires


def stricter_policy(one: Policy, other: Policy) -> Policy:
    """Return the stricter of two policies. The order is ``never``, ``ask``, ``always``."""
    return max(one, other, key=_STRICTNESS.index)


def parse_json(text: str) -> object:
    """Parse the JSON in ``text``, and return its value.

    Raise ValueError if it is invalid, contains NaN or Infinity, or is nested deeper than `MAX_NESTING`. Raise
    RecursionError if it is nested too deeply to parse.
    """
    value: object = json.loads(text, parse_constant=_refuse_constant)
    if is_nested_deeper(value, MAX_NESTING):
        raise ValueError(f"nested more than {MAX_NESTING} deep")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except (ValueError, RecursionError):
        return False


def dump_request(request: Request) -> str:
    """Return ``request`` as JSON, the content of its row."""
    return json.dumps(asdict(request), ensure_ascii=False)


def parse_request(text: str) -> Request:
    """Return the request in ``text``: the reverse of `dump_request`. Raise `JournalDamaged` if it is
    invalid."""
    fields = _parse_fields(text)
    return _build_record(
        Request,
        {
            **fields,
            "calls": tuple(_build_record(PendingCall, each) for each in _list_of(fields, "calls")),
            "options": tuple(_build_record(Option, each) for each in _list_of(fields, "options")),
        },
    )


def dump_answer(answer: Answer) -> str:
    """Return ``answer`` as JSON, the content of its row."""
    fields = asdict(answer)
    if not answer.declined:
        # Versions before 0.3 do not accept this field.
        del fields["declined"]
    return json.dumps(fields, ensure_ascii=False)


def parse_answer(text: str) -> Answer:
    """Return the answer in ``text``: the reverse of `dump_answer`. Raise `JournalDamaged` if it is
    invalid."""
    fields = _parse_fields(text)
    values = _list_of(fields, "values")
    if not all(isinstance(each, str) for each in values):
        raise JournalDamaged
    decisions = tuple(_build_record(CallDecision, each) for each in _list_of(fields, "decisions"))
    return _build_record(Answer, {**fields, "decisions": decisions, "values": tuple(values)})


def _parse_fields(text: str) -> Mapping[str, Json]:
    fields = parse_object(text)
    if fields is None:
        raise JournalDamaged
    return fields


def _list_of(fields: Mapping[str, Json], name: str) -> Sequence[Json]:
    found = fields.get(name)
    if not isinstance(found, list):
        raise JournalDamaged
    return found


_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "str": str,
    "str | None": (str, type(None)),
    "bool": bool,
    "int | None": (int, type(None)),
    "Mapping[str, object]": Mapping,
    "RequestKind": str,
}
"""The stored type of a field, by its annotation. All other fields are tuples that the parsers built."""


def _build_record(kind: type[_Record], values: object) -> _Record:
    """Return a record of ``kind`` with the fields ``values``. Raise `JournalDamaged` if a field is missing,
    unknown, or of the wrong type."""
    known = {each.name: each for each in fields_of(cast("Any", kind))}
    if not isinstance(values, Mapping) or not values.keys() <= known.keys():
        raise JournalDamaged
    for name, value in values.items():
        if not isinstance(value, _TYPES.get(str(known[name].type), tuple)):
            raise JournalDamaged
    if values.get("kind", "prompt") not in get_args(RequestKind):
        raise JournalDamaged
    try:
        return kind(**values)
    except TypeError as error:
        raise JournalDamaged from error


def answer_outcome(request: Request, answer: Answer) -> str:
    """Return the outcome of ``answer`` to ``request`` as one word: approved, rejected, mixed, edited,
    replied, chosen or expired."""
    if answer.expired:
        return "expired"
    if answer.declined:
        return "rejected"
    if request.kind != "approve":
        return "replied" if request.kind == "prompt" else "chosen"
    approved = [decision for decision in answer.decisions if decision.approved]
    if len(approved) < len(answer.decisions):
        return "mixed" if approved else "rejected"
    return "edited" if any(decision.arguments is not None for decision in approved) else "approved"


def summarize_request(request: Request) -> str:
    """Return ``request`` as one line, for lists."""
    if request.prompt:
        return request.prompt.strip().split("\n", 1)[0]
    return ", ".join(describe_call(call) for call in request.calls)


def describe_call(call: PendingCall) -> str:
    """Return the tool and subject of ``call``, for lists."""
    return f"{call.name} {call_subject(call)}".strip()


_SUBJECTS: Final = ("filepath", "filename", "path", "command", "to_agent", "to", "city", "url", "query")


def call_subject(call: PendingCall) -> str:
    """Return the subject of ``call``: its path, command or first short text; empty if it has none."""
    arguments = parse_arguments(call.arguments)
    named = [arguments[name] for name in _SUBJECTS if isinstance(arguments.get(name), str)]
    others = [value for value in arguments.values() if isinstance(value, str) and len(value) <= 60]
    return str(next(iter((*named, *others)), "")).split("\n", 1)[0][:120]


def parse_arguments(text: str) -> Mapping[str, Json]:
    """Parse the arguments of a call, the JSON in ``text``, for display and storage. Return an empty mapping
    if it is not an object."""
    if not _is_object(text):
        return {}
    arguments = json.loads(text)
    if "\\u" in text:
        # Models can write lone surrogates.
        arguments = json.loads(validation.replace_lone_surrogates(json.dumps(arguments, ensure_ascii=False)))
    return cast("Mapping[str, Json]", arguments)


def decide_all(
    request: Request, approved: bool, reason: str = "", edited: Mapping[str, str] | None = None
) -> Answer:
    """Return an answer with the same decision for all calls of ``request``.

    - ``approved``: whether the calls are approved.
    - ``reason``: a text for the model, default none.
    - ``edited``: new arguments (JSON) by call id, default none.
    """
    given = edited or {}
    decisions: Sequence[CallDecision] = [
        CallDecision(call.id, approved, reason, given.get(call.id)) for call in request.calls
    ]
    return Answer(decisions=tuple(decisions))
