"""Signed decisions: what a person signs, and whether a row is one that counts. Pure.

What is signed is JSON, kept as it was signed in the detail of the decision's row. It says who decided what,
by which key, and of what: the rows that it is about are in there as they were, so that it holds for nothing
else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from watchroom.model import (
    ANSWER,
    DISMISS,
    END_TASK,
    MESSAGE,
    OUTSIDE,
    RELEASE_AGENTS,
    RESOLVE,
    RESUME,
    REVERT,
    REVERT_WORK,
    SET_BUDGET,
    Draft,
    Json,
    Row,
    Write,
)
from watchroom.rules.append import KEY
from watchroom.rules.globs import matches_text
from watchroom.rules.people import ADD_PERSON, REVOKE_PERSON, ZONE, People, Person, parse_person
from watchroom.rules.row_leaf import hash_row
from watchroom.rules.settings import SIGN_SETTINGS
from watchroom.rules.trace_context import BEGAN, TRACEPARENT
from watchroom.sshsig import InvalidPublicKey, InvalidSignature, PublicKey, parse_key, verify

NAMESPACE: Final = "watchroom-decision"
FORMAT: Final = "watchroom-decision/1"
SIGNED: Final = "signed"
"""The name in a row's detail of what was signed."""
SIGNATURE: Final = "signature"
CHECKPOINT: Final = "checkpoint"
"""The name, in what is signed, of the newest checkpoint of the journal that was known then."""
OWNER_TOOLS: Final = frozenset({ADD_PERSON, REVOKE_PERSON, SIGN_SETTINGS, "make_token", "revoke_token"})
"""What only owners decide."""
DECISION_TOOLS: Final = OWNER_TOOLS | {
    ANSWER,
    DISMISS,
    END_TASK,
    RELEASE_AGENTS,
    RESOLVE,
    RESUME,
    REVERT,
    REVERT_WORK,
    SET_BUDGET,
}
"""What is signed where the workspace is closed. Stopping and pausing are not: they never wait for a key."""
_UNSIGNED: Final = frozenset({SIGNED, SIGNATURE, KEY, TRACEPARENT, BEGAN, "call", "operation"})
"""Of a detail: what is put there on the way into the journal."""
_ABOUT: Final = ("request", "conflict", "resolves")
"""The fields of a detail that name rows which a decision is about."""
_MOST_BYTES: Final = 4_000
_LONGEST_FINGERPRINT: Final = 60
_MOST_ABOUT: Final = 1_000
Lookup = Callable[[int], Row | None]
"""Gives the row of a number."""


def is_word(row: Row | Draft) -> bool:
    """Whether ``row`` is what a person writes to an agent: it is signed where a key is unlocked, and is read
    as unverified in a closed workspace where it is not."""
    return row.tool == MESSAGE and row.zone == "session" and row.actor.startswith("human:")


def is_decision(row: Row | Draft) -> bool:
    """Whether ``row`` is a decision of a person that counts only with a signature in a closed workspace."""
    return row.tool in DECISION_TOOLS and row.actor.startswith("human:")


def as_undecided(row: Row) -> Row:
    """What is left of ``row``, a decision that does not count: that something was written there, from
    outside, which settles, resumes and ends nothing."""
    return row._replace(actor=OUTSIDE, tool="", detail_json="")


def signing_key(row: Row) -> str:
    """The fingerprint of the key by which the decision ``row`` says that it is signed, empty where it says
    none."""
    signed = row.detail.get(SIGNED)
    try:
        told = json.loads(signed) if isinstance(signed, str) else None
    except (ValueError, RecursionError):
        return ""
    key = told.get("key") if isinstance(told, dict) else None
    return key[:_LONGEST_FINGERPRINT] if isinstance(key, str) else ""


def describe_decision(
    draft: Draft, people: People, key: PublicKey, time: int, lookup: Lookup, checkpoint: str = ""
) -> str:
    """What is signed with ``key`` so that ``draft`` counts among ``people``, at ``time`` (nanoseconds since
    the epoch); ``lookup`` gives the rows that it is about, ``checkpoint`` is the body of the newest one of
    the journal, empty where there is none."""
    content = None if draft.content is None else hashlib.sha256(draft.content.encode()).hexdigest()
    base = draft.expected if isinstance(draft, Write) else draft.base
    detail = draft.detail or {}
    told: dict[str, Json] = {
        "format": FORMAT,
        "workspace": people.workspace,
        "person": draft.actor,
        "key": key.fingerprint,
        "tool": draft.tool,
        "zone": draft.zone,
        "path": draft.path,
        "base": base,
        "content": content,
        "message": draft.message,
        "detail": _digest(detail),
        "about": [[seq, leaf] for seq, leaf in _about(detail, lookup)],
        "time": time,
        CHECKPOINT: checkpoint,
    }
    return _canonical(told)


def sign_draft(draft: Draft, signed: str, signature: str) -> Draft:
    """``draft`` with what was ``signed`` of it, and the ``signature``."""
    return draft._replace(detail={**(draft.detail or {}), SIGNED: signed, SIGNATURE: signature})


def find_flaw(row: Row, people: People, lookup: Lookup | None, content: str | None = None) -> str:
    """Why the decision ``row`` does not count among ``people``, as they were before it: the name of a rule;
    empty where it counts. ``lookup`` gives the rows that it is about (None: they are not looked at);
    ``content`` is that of a row that enrols somebody, or changes their keys: one's own one may change."""
    if not people.is_closed and row.zone != ZONE:
        return ""
    detail = row.detail
    signed, signature = detail.get(SIGNED), detail.get(SIGNATURE)
    if not isinstance(signed, str) or not isinstance(signature, str) or len(signed) > _MOST_BYTES * 10:
        return "decision_unsigned"
    person = people.find(row.actor) if people.is_closed else _first_person(row, content)
    if person is None:
        return "decision_stranger"
    try:
        told = json.loads(signed)
    except (ValueError, RecursionError):
        return "decision_differs"
    if not isinstance(told, dict) or _canonical(told) != signed:
        return "decision_differs"
    if told.get("workspace") != people.workspace or not people.workspace:
        return "decision_elsewhere"
    is_own = _is_own_rotation(row, person, content)
    flaw = _find_difference(row, told, detail, lookup)
    flaw = flaw or _find_missing_right(row, person, lookup, told, is_own=is_own)
    if flaw:
        return flaw
    return _find_wrong_signature(person, told, signed, signature)


def apply_person_row(people: People, row: Row, content: str | None, lookup: Lookup | None) -> People:
    """The people after ``row`` of their zone, which has the ``content``: as before where it does not
    count."""
    person = None if row.deleted else parse_person(row.path, content or "")
    if row.version is None or (person is None and not row.deleted):
        return people
    if people.check_change(row.path, person) or find_flaw(row, people, lookup, content):
        return people
    return people.without(row.path) if person is None else people.with_person(person)


def _find_difference(
    row: Row, told: Mapping[str, Json], detail: Mapping[str, Json], lookup: Lookup | None
) -> str:
    """Whether what was signed is something else than ``row`` is."""
    is_same = (
        told.get("format") == FORMAT
        and told.get("person") == row.actor
        and (told.get("tool"), told.get("zone"), told.get("path")) == (row.tool, row.zone, row.path)
        and (told.get("base"), told.get("content")) == (row.base, row.sha256)
        and (told.get("message"), told.get("detail")) == (row.message, _digest(detail))
    )
    if not is_same:
        return "decision_differs"
    if lookup is None:
        return ""
    about = [[seq, leaf] for seq, leaf in _about(detail, lookup)]
    return "" if told.get("about") == about else "decision_about"


def _is_own_rotation(row: Row, person: Person, content: str | None) -> bool:
    """Whether ``row``, which has the ``content``, gives ``person`` other keys and nothing else."""
    if row.tool != ADD_PERSON or row.path != person.name:
        return False
    after = parse_person(row.path, content or "")
    return after is not None and after._replace(keys=person.keys) == person


def _find_missing_right(
    row: Row, person: Person, lookup: Lookup | None, told: Mapping[str, Json], *, is_own: bool
) -> str:
    """Whether the decision is not ``person``'s to make."""
    if person.role == "viewer" or (row.tool in OWNER_TOOLS and person.role != "owner" and not is_own):
        return "decision_role"
    time = told.get("time")
    if person.expires is not None and not (isinstance(time, int) and max(time, row.time) <= person.expires):
        return "decision_expired"
    if is_own:
        return ""
    if row.tool != ANSWER or not (person.tools or person.agents):
        return "decision_limits" if person.tools or person.agents else ""
    number = row.detail.get("request")
    asked = lookup(number) if lookup is not None and isinstance(number, int) else None
    tools = asked.detail.get("tools") if asked is not None else None
    names = [str(each) for each in tools] if isinstance(tools, list) else []
    agent = row.path.partition("/")[0]
    is_tool = not person.tools or (bool(names) and all(_matches(each, person.tools) for each in names))
    is_agent = not person.agents or _matches(agent, person.agents)
    return "" if is_tool and is_agent else "decision_limits"


def _find_wrong_signature(person: Person, told: Mapping[str, Json], signed: str, signature: str) -> str:
    for line in person.keys:
        try:
            key = parse_key(line)
        except InvalidPublicKey:
            continue
        if key.fingerprint == told.get("key"):
            try:
                verify(signature, signed.encode(), NAMESPACE, key)
            except InvalidSignature as error:
                return str(error.values["rule"])
            return ""
    return "decision_key"


def _first_person(row: Row, content: str | None) -> Person | None:
    """The owner who closes the workspace: known by the key that the row itself enrols."""
    person = parse_person(row.path, content or "") if row.zone == ZONE and row.version else None
    is_own = person is not None and person.actor == row.actor and person.role == "owner"
    return person if is_own else None


def _about(detail: Mapping[str, Json], lookup: Lookup) -> Iterator[tuple[int, str]]:
    """The numbers of the rows that a decision with this ``detail`` is about, and their leaves (hex)."""
    for name in _ABOUT:
        value = detail.get(name)
        numbers = value if isinstance(value, list) else [value]
        for number in numbers[:_MOST_ABOUT]:
            row = lookup(number) if type(number) is int else None
            if row is not None:
                yield row.seq, hash_row(row).hex()


def _digest(detail: Mapping[str, Json]) -> str:
    kept: dict[str, Json] = {name: value for name, value in detail.items() if name not in _UNSIGNED}
    return hashlib.sha256(_canonical(kept).encode()).hexdigest()


def _canonical(fields: Mapping[str, Json]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(matches_text(each, text) for each in patterns)
