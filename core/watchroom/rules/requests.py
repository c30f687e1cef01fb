"""What agents ask of people, and what people answer. Pure; the shapes are plain: looking costs little.

An agent asks to approve tool calls, for a text (``prompt``), or for a choice (``select``): RUN-people. Each
answer is checked against what was asked, once, by `check_answer`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from watchroom import validation
from watchroom.errors import InvalidAnswer, JournalDamaged
from watchroom.model import ANSWER, WITHDRAW, Json, Row, frozen_json, is_nested_deeper, parse_object

_Record = TypeVar("_Record")
RequestKind: TypeAlias = Literal["approve", "prompt", "select"]
Policy: TypeAlias = Literal["always", "never", "ask"]
"""Whether a tool may be called: always, never, or only when a person approves of the call."""

RequestState: TypeAlias = Literal["open", "answered", "expired", "cancelled", "withdrawn"]
"""How a request stands. ``cancelled``: a person ended the session that asked; ``withdrawn``: nobody needs an
answer any more."""

DIFFERENCE: Final = "difference"
"""The name in a request's metadata: what its call would change outside of the zones, as a unified
difference."""
POLICY_RULE: Final = "policy_rule"
"""The name in a request's metadata, and in the detail of a refused call's row: the rule of the workspace's
policy by which people are asked, or it was refused."""
MAX_NESTING: Final = 100
"""So many arrays and objects may stand in one another in a call's arguments."""
CLOCK_SECONDS: Final = 0.5
"""Seconds between two looks at the journal's clock while a request with a deadline is open. The clock jumps
when it is set, and when a machine wakes up."""
_LONGEST_TEXT: Final = 100_000
"""Characters."""
_STRICTNESS: Final[Sequence[Policy]] = ("always", "ask", "never")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that waits for approval. ``arguments`` is the JSON text that the model wrote.

    ``checksum`` covers these and what the call would have written when it was asked about: an approval holds
    for nothing else. Empty where the approval depends on the arguments alone. ``asked_again``: it was
    approved before, and what it would write had changed by then. ``notice`` is what was said as it was
    approved, for its model; empty for nothing.
    """

    id: str
    name: str
    arguments: str
    checksum: str = ""
    asked_again: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One of the answers to choose from: what people read, and what the agent gets."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent wants to know. ``metadata`` is JSON; ``expires`` nanoseconds since the epoch, or None."""

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
    """What becomes of one asked call, and for what ``reason``: the model reads it, whatever is decided.
    ``arguments`` (JSON text) replaces the model's, None leaves them."""

    call_id: str
    approved: bool
    reason: str = ""
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer: decisions on calls, a text, or the values chosen. ``expired``: nobody gave one.
    ``declined``: the person does not answer the question or choice; ``text`` is the reason, perhaps empty."""

    decisions: tuple[CallDecision, ...] = ()
    text: str = ""
    values: tuple[str, ...] = ()
    expired: bool = False
    declined: bool = False


def check_answer(request: Request, answer: Answer) -> None:
    """Raises `InvalidAnswer`, which names the rule, unless ``answer`` answers ``request``."""
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
    return "answer_length" if len(answer.text) > _LONGEST_TEXT else None


def _choice_problem(request: Request, answer: Answer) -> str | None:
    if answer.declined and not answer.decisions and not answer.values:
        return "answer_length" if len(answer.text) > _LONGEST_TEXT else None
    if answer.decisions or answer.text or answer.declined:
        return "answer_select"
    offered = {option.value for option in request.options}
    if not answer.values or not offered.issuperset(answer.values):
        return "answer_offered"
    if len(set(answer.values)) != len(answer.values) or (len(answer.values) > 1 and not request.multi):
        return "answer_one"
    return None


def request_state(ended: Row | None) -> RequestState:
    """How a request stands that ``ended`` has closed, the second version of its path; None while it is
    open."""
    if ended is None:
        return "open"
    if ended.tool == ANSWER:
        return "answered"
    if ended.detail.get("outcome") == "expired":
        return "expired"
    return "cancelled" if ended.detail.get("by") else "withdrawn"


def ends_request(row: Row) -> bool:
    """Whether ``row`` closes the request of its path."""
    return row.zone == "request" and row.outcome == "ok" and row.tool in (ANSWER, WITHDRAW)


def has_expired(expires: int | None, now: int) -> bool:
    """Whether an answer at ``now`` comes too late for a request that ``expires`` then (both nanoseconds since
    the epoch; None: it never does)."""
    return expires is not None and now > expires


def stricter_policy(one: Policy, other: Policy) -> Policy:
    """That of the two policies ``one`` and ``other`` that lets less happen."""
    return max(one, other, key=_STRICTNESS.index)


def parse_json(text: str) -> object:
    """Return the value of the JSON in ``text``. Raise ValueError if it is damaged, contains NaN or Infinity,
    or is nested deeper than `MAX_NESTING`; RecursionError if it is nested too deep to parse."""
    value: object = json.loads(text, parse_constant=_no_number)
    if is_nested_deeper(value, MAX_NESTING):
        raise ValueError(f"nested more than {MAX_NESTING} deep")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except (ValueError, RecursionError):
        return False


def dump_request(request: Request) -> str:
    """``request`` as JSON, as its row carries it."""
    return json.dumps(asdict(request), ensure_ascii=False)


def parse_request(text: str) -> Request:
    """Return the request that ``text`` carries: the reverse of `dump_request`. Raise `JournalDamaged` if the
    text is no request."""
    fields = _parse_fields(text)
    return _made_of(
        Request,
        {
            **fields,
            "calls": tuple(_made_of(PendingCall, each) for each in _list_of(fields, "calls")),
            "options": tuple(_made_of(Option, each) for each in _list_of(fields, "options")),
        },
    )


def dump_answer(answer: Answer) -> str:
    """``answer`` as JSON, as its row carries it."""
    fields = asdict(answer)
    if not answer.declined:
        # Versions before 0.3 do not know the field.
        del fields["declined"]
    return json.dumps(fields, ensure_ascii=False)


def parse_answer(text: str) -> Answer:
    """Return the answer that ``text`` carries: the reverse of `dump_answer`. Raise `JournalDamaged` if the
    text is no answer."""
    fields = _parse_fields(text)
    values = _list_of(fields, "values")
    if not all(isinstance(each, str) for each in values):
        raise JournalDamaged
    decisions = tuple(_made_of(CallDecision, each) for each in _list_of(fields, "decisions"))
    return _made_of(Answer, {**fields, "decisions": decisions, "values": tuple(values)})


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
"""By its annotation, the type that a field is stored as; any other field is a tuple that was made here."""


def _made_of(kind: type[_Record], values: object) -> _Record:
    """Return the record of that ``kind`` with ``values`` as its fields. Raise `JournalDamaged` if a field is
    missing, not known, or of another type."""
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
    """What ``answer`` to ``request`` comes to, in one word, for lists: approved, rejected, mixed, edited,
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
    """What ``request`` asks, in one line for lists."""
    if request.prompt:
        return request.prompt.strip().split("\n", 1)[0]
    return ", ".join(describe_call(call) for call in request.calls)


def describe_call(call: PendingCall) -> str:
    """``call`` in short, for lists: its tool, and what it is about."""
    return f"{call.name} {call_subject(call)}".strip()


_SUBJECTS: Final = ("filepath", "filename", "path", "command", "to_agent", "to", "city", "url", "query")


def call_subject(call: PendingCall) -> str:
    """What ``call`` is about, in a word or two: its path, command, or first short text."""
    arguments = parse_arguments(call.arguments)
    named = [arguments[name] for name in _SUBJECTS if isinstance(arguments.get(name), str)]
    others = [value for value in arguments.values() if isinstance(value, str) and len(value) <= 60]
    return str(next(iter((*named, *others)), "")).split("\n", 1)[0][:120]


def parse_arguments(text: str) -> Mapping[str, Json]:
    """A call's arguments, the JSON in ``text``, as an object that can be shown and stored; empty where the
    text is none."""
    if not _is_object(text):
        return {}
    arguments = json.loads(text)
    if "\\u" in text:
        # Models write halves of characters, too.
        arguments = json.loads(validation.replace_lone_surrogates(json.dumps(arguments, ensure_ascii=False)))
    return cast("Mapping[str, Json]", arguments)


def decide_all(
    request: Request, approved: bool, reason: str = "", edited: Mapping[str, str] | None = None
) -> Answer:
    """An answer with one decision for all calls of ``request``: whether they are ``approved``, and for what
    ``reason``; ``edited`` gives new arguments by call id."""
    given = edited or {}
    decisions: Sequence[CallDecision] = [
        CallDecision(call.id, approved, reason, given.get(call.id)) for call in request.calls
    ]
    return Answer(decisions=tuple(decisions))
