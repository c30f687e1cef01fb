"""Signed decisions: what a person signs, and whether a row that changes protected state counts. Pure.

`watchroom.rules.effects` says what a row would do. In a closed workspace most of it counts only with the
signature of an enrolled person. A person signs a statement in JSON, which the row's detail keeps as it was
signed. It names the person, key, tool, place and content, the rows that it is about, and a position: the
newest row of the journal at that time, by its number and leaf. So it holds in this journal alone, and once.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from watchroom.errors import InvalidAnswer, JournalDamaged
from watchroom.model import MAX_ROW, OUTSIDE, Draft, Json, Row, Write
from watchroom.rules.append import KEY
from watchroom.rules.damage import find_damage
from watchroom.rules.details import get_int
from watchroom.rules.effects import ADD_PERSON, EFFECT_RULES, Effect, EffectRule, effect_of, has_right_form
from watchroom.rules.globs import matches_text
from watchroom.rules.people import People, Person, parse_person
from watchroom.rules.requests import Request, check_answer, parse_answer, parse_request
from watchroom.rules.row_leaf import has_leaf, hash_row
from watchroom.rules.trace_context import BEGAN, TRACEPARENT
from watchroom.sshsig import InvalidPublicKey, InvalidSignature, PublicKey, parse_key, verify

NAMESPACE: Final = "watchroom-decision"
FORMAT: Final = "watchroom-decision/2"
LEGACY_FORMAT: Final = "watchroom-decision/1"
"""Of 0.2.0 and before: it names no position, so it might hold in another journal as well."""
SIGNED: Final = "signed"
"""The name of the statement in a row's detail."""
SIGNATURE: Final = "signature"
CHECKPOINT: Final = "checkpoint"
"""The name, in a statement, of the newest checkpoint of the journal at that time."""
POSITION: Final = "position"
"""The name, in a statement, of the newest row of the journal at that time: its number and leaf (hex)."""
_ID_FORM: Final = re.compile(r"[0-9a-f]{32}")
WRONG_FORM: Final = "decision_form"
"""The rule that a row breaks whose tool or actor may not cause its effect."""
_UNSIGNED: Final = frozenset({SIGNED, SIGNATURE, KEY, TRACEPARENT, BEGAN, "call", "operation"})
"""What the journal adds to a detail after it was signed."""
_ABOUT: Final = ("request", "conflict", "resolves", "row")
"""The fields of a detail that name rows which a decision is about."""
_MAX_STATEMENT_CHARACTERS: Final = 400_000
"""It has the row's message."""
_MAX_FINGERPRINT: Final = 60
_MAX_ABOUT: Final = 1_000


class Evidence(Protocol):
    """What is known of the rows before the one that is judged."""

    def row(self, seq: int) -> Row | None:
        """Return the row with that number, None where there is none."""
        ...

    def content(self, seq: int) -> str | None:
        """Return the content of the row with that number, None where it has none."""
        ...

    def is_repeated(self, row: Row) -> bool:
        """Whether an earlier row has the zone, path, actor, tool and statement of ``row``."""
        ...


def as_undecided(row: Row) -> Row:
    """Return what is left of ``row`` where it does not count: somebody wrote there, from outside, and that
    settles, resumes and ends nothing."""
    return row._replace(actor=OUTSIDE, tool="", detail_json="")


def signing_key(row: Row) -> str:
    """Return the fingerprint of the key that ``row`` claims to be signed with, empty where it names none."""
    key = (parse_statement(row) or {}).get("key")
    return key[:_MAX_FINGERPRINT] if isinstance(key, str) else ""


def parse_statement(row: Row) -> Mapping[str, Json] | None:
    """Return the statement of ``row``, None where it has none in the one form that can be signed."""
    signed = row.detail.get(SIGNED) if f'"{SIGNED}"' in row.detail_json else None
    if not isinstance(signed, str) or len(signed) > _MAX_STATEMENT_CHARACTERS:
        return None
    try:
        statement = json.loads(signed)
        is_canonical = isinstance(statement, dict) and _canonical(statement) == signed
    except (ValueError, RecursionError):
        return None
    return statement if is_canonical else None


def statement_id(row: Row) -> str:
    """Return what two rows share that carry one statement for one place, empty where ``row`` has none."""
    signed = row.detail.get(SIGNED) if f'"{SIGNED}"' in row.detail_json else None
    if not isinstance(signed, str):
        return ""
    parts = (row.zone, row.path, row.actor, row.tool, signed)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_legacy(row: Row) -> bool:
    """Whether ``row`` is signed in the form of 0.2.0, which names no position."""
    return (parse_statement(row) or {}).get("format") == LEGACY_FORMAT


def describe_decision(
    draft: Draft,
    people: People,
    key: PublicKey,
    time: int,
    evidence: Evidence,
    newest: Row | None,
    checkpoint: str = "",
) -> str:
    """Return the statement to sign so that ``draft`` counts.

    - ``people``: who is enrolled, and the id of the workspace.
    - ``key``: the key that will sign.
    - ``time``: nanoseconds since the epoch.
    - ``evidence``: gives the rows that the draft is about.
    - ``newest``: the newest row of the journal that has a leaf, None in an empty journal.
    - ``checkpoint``: the body of the journal's newest checkpoint, empty where it has none.
    """
    content = None if draft.content is None else hashlib.sha256(draft.content.encode()).hexdigest()
    detail = draft.detail or {}
    statement: dict[str, Json] = {
        "format": FORMAT,
        "workspace": people.workspace,
        "person": draft.actor,
        "key": key.fingerprint,
        "tool": draft.tool,
        "zone": draft.zone,
        "path": draft.path,
        "base": draft.expected if isinstance(draft, Write) else draft.base,
        "content": content,
        "message": draft.message,
        "detail": _digest(detail),
        "about": [[seq, leaf] for seq, leaf in _about(detail, evidence)],
        "time": time,
        CHECKPOINT: checkpoint,
        POSITION: _position(newest),
    }
    return _canonical(statement)


def sign_draft(draft: Draft, statement: str, signature: str) -> Draft:
    """Return ``draft`` with its ``statement`` and ``signature``."""
    return draft._replace(detail={**(draft.detail or {}), SIGNED: statement, SIGNATURE: signature})


def find_flaw(row: Row, people: People, evidence: Evidence) -> str:
    """Return the rule because of which ``row`` may not change protected state, empty where it may.

    ``people`` are those who were enrolled before it. What a row does is judged by its effect, whatever tool
    and actor it names; a row without an effect on protected state has no flaw.
    """
    effect = effect_of(row)
    if effect is None:
        return ""
    if not has_right_form(row, effect) or find_damage(row) is not None:
        return WRONG_FORM
    rule = EFFECT_RULES[effect]
    if rule.is_signed and row.kind == "human" and (people.is_closed or effect == "person"):
        flaw = _find_wrong_statement(row, effect, rule, people, evidence)
        if flaw:
            return flaw
    return WRONG_FORM if effect == "answer" and not _answers_its_request(row, evidence) else ""


def takes_effect(row: Row, flaw: str) -> bool:
    """Whether ``row`` is carried out although `find_flaw` found ``flaw``: what only stops or ends something
    needs no signature."""
    effect = effect_of(row)
    if not flaw or effect is None:
        return True
    return EFFECT_RULES[effect].is_restricting and flaw != WRONG_FORM


def is_reported(row: Row, flaw: str) -> bool:
    """Whether a person has to know of ``row``, which has a ``flaw``."""
    effect = effect_of(row)
    return bool(flaw) and effect is not None and (flaw == WRONG_FORM or EFFECT_RULES[effect].is_reported)


def read_id(row: Row, evidence: Evidence) -> str:
    """Return the id that the version ``row`` gives the workspace; empty where its content has not the form of
    one."""
    is_id = has_right_form(row, "identify") and row.version is not None
    content = _content_of(row, evidence) if is_id else ""
    return content if _ID_FORM.fullmatch(content) else ""


def apply_person_row(people: People, row: Row, evidence: Evidence) -> People:
    """Return the people after ``row`` of their zone: the same where it does not count."""
    if row.version is None:
        return people
    person = None if row.deleted else parse_person(row.path, _content_of(row, evidence))
    if person is None and not row.deleted:
        return people
    if people.check_change(row.path, person) or find_flaw(row, people, evidence):
        return people
    after = people.without(row.path) if person is None else people.with_person(person)
    return after if is_legacy(row) else after._replace(accepts_legacy=False)


def _answers_its_request(row: Row, evidence: Evidence) -> bool:
    """Whether the answer ``row`` fits the request at its path."""
    request = _find_request(row, evidence)
    if request is None:
        return False
    try:
        check_answer(request, parse_answer(_content_of(row, evidence)))
    except (JournalDamaged, InvalidAnswer):
        return False
    return True


def _find_request(row: Row, evidence: Evidence) -> Request | None:
    """Return the request that the answer ``row`` names, None where that is no request at its path."""
    number = get_int(row.detail, "request")
    asked = evidence.row(number) if number is not None and 0 < number < row.seq else None
    if asked is None or (asked.zone, asked.path, asked.version) != (row.zone, row.path, 1):
        return None
    try:
        return parse_request(_content_of(asked, evidence))
    except JournalDamaged:
        return None


def _content_of(row: Row, evidence: Evidence) -> str:
    """Return the content of ``row``; empty where it has none, or another one than its checksum says."""
    content = evidence.content(row.seq) or ""
    return content if hashlib.sha256(content.encode("utf-8", "replace")).hexdigest() == row.sha256 else ""


def _find_wrong_statement(
    row: Row, effect: Effect, rule: EffectRule, people: People, evidence: Evidence
) -> str:
    """Return the rule that the statement or signature of ``row`` breaks, empty where none is broken."""
    signature = row.detail.get(SIGNATURE)
    if SIGNED not in row.detail or not isinstance(signature, str):
        return "decision_unsigned"
    person = people.find(row.actor) if people.is_closed else _first_person(row, evidence)
    if person is None:
        return "decision_stranger"
    statement = parse_statement(row)
    if statement is None:
        return "decision_differs"
    if statement.get("workspace") != people.workspace or not people.workspace:
        return "decision_elsewhere"
    is_own = effect == "person" and _is_own_rotation(row, person, evidence)
    # The signature comes before what the journal has to be asked about: anybody can write many rows.
    return (
        _find_difference(row, statement)
        or _find_wrong_signature(person, statement, str(row.detail[SIGNED]), signature)
        or _find_missing_right(row, effect, rule, person, statement, evidence, is_own=is_own)
        or _find_wrong_position(row, statement, people, evidence)
        or _find_wrong_subject(row, statement, evidence)
    )


def _find_difference(row: Row, statement: Mapping[str, Json]) -> str:
    """Whether ``row`` is something else than what was signed."""
    is_same = (
        statement.get("format") in (FORMAT, LEGACY_FORMAT)
        and statement.get("person") == row.actor
        and (statement.get("tool"), statement.get("zone")) == (row.tool, row.zone)
        and (statement.get("path"), statement.get("base")) == (row.path, row.base)
        and (statement.get("content"), statement.get("message")) == (row.sha256, row.message)
        and statement.get("detail") == _digest(row.detail)
    )
    return "" if is_same else "decision_differs"


def _find_wrong_position(row: Row, statement: Mapping[str, Json], people: People, evidence: Evidence) -> str:
    """Whether ``row`` is at another place of this or another journal than what was signed."""
    if row.version is not None and row.base is not None and row.base > 0 and row.version != row.base + 1:
        return "decision_repeated"
    if statement.get("format") == LEGACY_FORMAT:
        if not people.accepts_legacy:
            return "decision_legacy"
    else:
        position = statement.get(POSITION)
        seq = position[0] if isinstance(position, list) and len(position) == 2 else None
        if type(seq) is not int or not 0 <= seq < row.seq:
            return "decision_elsewhere"
        if position != _position(evidence.row(seq) if seq else None):
            return "decision_elsewhere"
    return "decision_repeated" if evidence.is_repeated(row) else ""


def _find_wrong_subject(row: Row, statement: Mapping[str, Json], evidence: Evidence) -> str:
    """Whether the rows that ``row`` is about are not those that were signed."""
    about = [[seq, leaf] for seq, leaf in _about(row.detail, evidence)]
    return "" if statement.get("about") == about else "decision_about"


def _is_own_rotation(row: Row, person: Person, evidence: Evidence) -> bool:
    """Whether ``row`` gives ``person`` other keys and changes nothing else."""
    if row.tool != ADD_PERSON or row.path != person.name:
        return False
    after = parse_person(row.path, _content_of(row, evidence))
    return after is not None and after._replace(keys=person.keys) == person


def _find_missing_right(
    row: Row,
    effect: Effect,
    rule: EffectRule,
    person: Person,
    statement: Mapping[str, Json],
    evidence: Evidence,
    *,
    is_own: bool,
) -> str:
    """Whether the decision is not ``person``'s to make."""
    if person.role == "viewer" or (rule.role == "owner" and person.role != "owner" and not is_own):
        return "decision_role"
    if person.expires is not None and _time_of(row, statement, evidence) > person.expires:
        return "decision_expired"
    if is_own or not (person.tools or person.agents):
        return ""
    if effect != "answer":
        return "decision_limits"
    request = _find_request(row, evidence)
    names = [call.name for call in request.calls] if request is not None else []
    agent = row.path.partition("/")[0]
    is_tool = not person.tools or (bool(names) and all(_matches(each, person.tools) for each in names))
    is_agent = not person.agents or _matches(agent, person.agents)
    return "" if is_tool and is_agent else "decision_limits"


def _time_of(row: Row, statement: Mapping[str, Json], evidence: Evidence) -> float:
    """Return when ``row`` was made, in nanoseconds since the epoch: not before it was signed, nor before the
    row before it, whatever it says itself."""
    time, before = statement.get("time"), evidence.row(row.seq - 1)
    times = (time if isinstance(time, int) else math.inf, row.time, before.time if before is not None else 0)
    return max(times)


def _find_wrong_signature(person: Person, statement: Mapping[str, Json], signed: str, signature: str) -> str:
    for line in person.keys:
        try:
            key = parse_key(line)
        except InvalidPublicKey:
            continue
        if key.fingerprint == statement.get("key"):
            try:
                verify(signature, signed.encode(), NAMESPACE, key)
            except InvalidSignature as error:
                return str(error.values["rule"])
            return ""
    return "decision_key"


def _first_person(row: Row, evidence: Evidence) -> Person | None:
    """Return the owner whose enrolment closes the workspace, by the key that the row itself enrols."""
    person = parse_person(row.path, _content_of(row, evidence))
    is_own = person is not None and person.actor == row.actor and person.role == "owner"
    return person if is_own else None


def _position(newest: Row | None) -> list[Json]:
    return [newest.seq, hash_row(newest).hex()] if newest is not None and has_leaf(newest) else [0, ""]


def _about(detail: Mapping[str, Json], evidence: Evidence) -> Iterator[tuple[int, str]]:
    """Yield the numbers and leaves (hex) of the rows that a decision with this ``detail`` is about."""
    for name in _ABOUT:
        value = detail.get(name)
        numbers = value if isinstance(value, list) else [value]
        for number in numbers[:_MAX_ABOUT]:
            row = evidence.row(number) if type(number) is int and 0 < number <= MAX_ROW else None
            if row is not None:
                yield row.seq, hash_row(row).hex()


def _digest(detail: Mapping[str, Json]) -> str:
    kept: dict[str, Json] = {name: value for name, value in detail.items() if name not in _UNSIGNED}
    return hashlib.sha256(_canonical(kept).encode()).hexdigest()


def _canonical(fields: Mapping[str, Json]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(matches_text(each, text) for each in patterns)
