"""Signed decisions: describes what a person signs, and checks whether a row that changes protected state
counts. Pure.

`watchroom.features.people.rules` returns the effect of a row. In a closed workspace, most effects need the
signature of an enrolled person. The person signs a statement in JSON, which the detail of the row keeps
unchanged. It names the person, key, tool, zone, path and content, the rows that the decision is about, and a
position: the number and leaf of the newest row of the journal. So a statement is valid in one journal only,
and for one row only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from watchroom.algorithms.globs import matches_text
from watchroom.algorithms.sshsig import PublicKey, parse_key, verify
from watchroom.errors import InvalidAnswer, InvalidPublicKey, InvalidSignature, JournalDamaged
from watchroom.features.needs.damage import find_damage
from watchroom.features.people.rows import People, Person, parse_person
from watchroom.features.people.rules import (
    ADD_PERSON,
    EFFECT_RULES,
    Effect,
    EffectRule,
    effect_of,
    has_right_form,
)
from watchroom.features.policy.grants import MAX_USES, Grant, covers, is_offered, parse_grant
from watchroom.features.requests.rows import Request, check_answer, has_expired, parse_answer, parse_request
from watchroom.kernel.rules.append import KEY
from watchroom.kernel.rules.details import get_int
from watchroom.kernel.rules.row_leaf import has_leaf, hash_row
from watchroom.kernel.rules.trace_context import BEGAN, TRACEPARENT
from watchroom.model import CALL, MAX_ROW, OPERATION, Draft, Json, Row, Write

NAMESPACE: Final = "watchroom-decision"
FORMAT: Final = "watchroom-decision/2"
LEGACY_FORMAT: Final = "watchroom-decision/1"
"""The format up to version 0.2.0. It has no position, so a statement can also be valid in a copy of the
journal."""
SIGNED: Final = "signed"
"""The field of a row's detail with the statement."""
SIGNATURE: Final = "signature"
"""The field of a row's detail with the signature of the statement."""
CHECKPOINT: Final = "checkpoint"
"""The field of a statement with the body of the journal's newest seal."""
POSITION: Final = "position"
"""The field of a statement with the number and leaf (hex) of the journal's newest row."""
_ID_FORM: Final = re.compile(r"[0-9a-f]{32}")
WRONG_FORM: Final = "decision_form"
"""The rule of a row whose tool, actor or fields are invalid for its effect."""
GRANT_ENDED: Final = "grant_ended"
"""The rule of a row that uses a grant after its end."""
_UNSIGNED: Final = frozenset({SIGNED, SIGNATURE, KEY, TRACEPARENT, BEGAN, CALL, OPERATION})
"""Fields that are added to a detail after it was signed."""
_ABOUT: Final = ("request", "conflict", "resolves", "row")
"""The fields of a detail with the numbers of the rows to which a decision applies."""
_MAX_STATEMENT_CHARACTERS: Final = 400_000
"""Maximum characters of a statement, which includes the row's message."""
_MAX_FINGERPRINT: Final = 60
_MAX_ABOUT: Final = 1_000


class Evidence(Protocol):
    """Access to the rows before the row that is checked."""

    def row(self, seq: int) -> Row | None:
        """Return row ``seq``, None if there is none."""
        ...

    def content(self, seq: int) -> str | None:
        """Return the content of row ``seq``, None if it has none."""
        ...

    def is_repeated(self, row: Row) -> bool:
        """Whether an earlier row at the same zone and path has the same actor, tool and statement as
        ``row``."""
        ...


def signing_key(row: Row) -> str:
    """Return the fingerprint of the key in the statement of ``row``; empty if there is none."""
    key = (parse_statement(row) or {}).get("key")
    return key[:_MAX_FINGERPRINT] if isinstance(key, str) else ""


def parse_statement(row: Row) -> Mapping[str, Json] | None:
    """Return the statement of ``row``; None if it has none, or the JSON is not in canonical form."""
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
    """Return a digest of the statement of ``row`` and its place; empty if the row has no statement."""
    signed = row.detail.get(SIGNED) if f'"{SIGNED}"' in row.detail_json else None
    if not isinstance(signed, str):
        return ""
    parts = (row.zone, row.path, row.actor, row.tool, signed)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_legacy(row: Row) -> bool:
    """Whether the statement of ``row`` has the format of 0.2.0, without a position."""
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
    """Return the statement to sign for ``draft``.

    - ``people``: the enrolled people, and the id of the workspace.
    - ``key``: the key that will sign.
    - ``time``: nanoseconds since the epoch.
    - ``evidence``: provides the rows that the draft is about.
    - ``newest``: the newest row with a leaf in the journal, None in an empty journal.
    - ``checkpoint``: the body of the journal's newest seal, default none.
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
    """Return ``draft`` with ``statement`` and ``signature`` in its detail."""
    return draft._replace(detail={**(draft.detail or {}), SIGNED: statement, SIGNATURE: signature})


def find_flaw(row: Row, people: People, evidence: Evidence) -> str:
    """Return the rule that prevents ``row`` from changing protected state; empty if it can, or if it has no
    such effect.

    ``people``: the people enrolled before ``row``.
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
    if effect in ("answer", "answer_by_grant") and not _answers_its_request(row, evidence):
        return WRONG_FORM
    if effect == "grant" and _find_offered(row, evidence) is None:
        return WRONG_FORM
    if effect == "use_grant":
        return _find_wrong_use(row, people, evidence)
    return _find_wrong_grant(row, people, evidence) if effect == "answer_by_grant" else ""


def takes_effect(row: Row, flaw: str) -> bool:
    """Whether ``row`` takes effect. ``flaw``: the result of `find_flaw`.

    A row that only stops or ends something needs no signature, but must have the right form.
    """
    effect = effect_of(row)
    if not flaw or effect is None:
        return True
    return EFFECT_RULES[effect].is_restricting and flaw != WRONG_FORM


def is_reported(row: Row, flaw: str) -> bool:
    """Whether ``row`` with this ``flaw`` becomes a need. Without a flaw, it does not."""
    effect = effect_of(row)
    return bool(flaw) and effect is not None and (flaw == WRONG_FORM or EFFECT_RULES[effect].is_reported)


def read_id(row: Row, evidence: Evidence) -> str:
    """Return the workspace's id in the version ``row``; empty if the id is invalid."""
    is_id = has_right_form(row, "identify") and row.version is not None
    content = _content_of(row, evidence) if is_id else ""
    return content if _ID_FORM.fullmatch(content) else ""


def apply_person_row(people: People, row: Row, evidence: Evidence) -> People:
    """Return the people after ``row``, a row of their zone. Rows that do not count change nothing."""
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
    """Whether the answer ``row`` is valid for the request at its path."""
    request = _find_request(row, evidence)
    if request is None:
        return False
    try:
        check_answer(request, parse_answer(_content_of(row, evidence)))
    except (JournalDamaged, InvalidAnswer):
        return False
    return True


def _find_request(row: Row, evidence: Evidence) -> Request | None:
    """Return the request that the answer ``row`` names. None if it is not a request at the same path."""
    asked = _find_asked(row, evidence)
    return _read_request(asked, evidence) if asked is not None and asked.path == row.path else None


def _find_asked(row: Row, evidence: Evidence) -> Row | None:
    """Return the row of the request that ``row`` names, None if there is none."""
    number = get_int(row.detail, "request")
    asked = evidence.row(number) if number is not None and 0 < number < row.seq else None
    is_request = asked is not None and (asked.zone, asked.version) == ("request", 1)
    return asked if is_request else None


def _read_request(asked: Row, evidence: Evidence) -> Request | None:
    try:
        return parse_request(_content_of(asked, evidence))
    except JournalDamaged:
        return None


def _find_offered(row: Row, evidence: Evidence) -> Grant | None:
    """Return the grant in ``row``, None if its request does not offer it."""
    grant, asked = parse_grant(_content_of(row, evidence)), _find_asked(row, evidence)
    if grant is None or asked is None or grant.request != asked.seq or find_damage(asked) is not None:
        return None
    if row.path.partition("/")[0] != grant.agent or not has_right_form(asked, "ask"):
        return None
    request = _read_request(asked, evidence)
    return grant if request is not None and is_offered(grant, asked.path, request) else None


def _find_wrong_use(row: Row, people: People, evidence: Evidence) -> str:
    """Return the rule that is broken if the grant at the path of ``row`` does not allow the call of the
    request that ``row`` names; empty if it does."""
    made, asked = _find_made(row, evidence), _find_asked(row, evidence)
    if made is None or asked is None or not made.seq < asked.seq or not has_right_form(asked, "ask"):
        return WRONG_FORM
    grant, request = parse_grant(_content_of(made, evidence)), _read_request(asked, evidence)
    if grant is None or request is None or not covers(grant, asked.path, request):
        return WRONG_FORM
    if row.version is None or row.version > 1 + grant.uses:
        return GRANT_ENDED
    # The person must still be enrolled with the key that signed the grant.
    person, now = people.find(made.actor), _least_time(row, evidence)
    is_late = has_expired(grant.expires, now) or (person is not None and has_expired(person.expires, now))
    return GRANT_ENDED if is_late else find_flaw(made, people, evidence)


def _find_made(row: Row, evidence: Evidence) -> Row | None:
    """Return the first version of the path of ``row``, a use of a grant. None if a version between is a
    revocation, or the versions do not name each other."""
    version = row.version or 0
    if version > 1 + MAX_USES:
        return None
    while version > 1:
        number = get_int(row.detail, "before")
        before = evidence.row(number) if number is not None and 0 < number < row.seq else None
        if before is None or before.deleted or (before.zone, before.path) != (row.zone, row.path):
            return None
        version -= 1
        if before.version != version:
            return None
        row = before
    return row


def _find_wrong_grant(row: Row, people: People, evidence: Evidence) -> str:
    """Return the rule that is broken if ``row`` is not the answer of a grant that counts; empty if it is."""
    number = get_int(row.detail, "grant")
    use = evidence.row(number) if number is not None and 0 < number < row.seq else None
    if use is None or effect_of(use) != "use_grant" or use.detail.get("request") != row.detail.get("request"):
        return WRONG_FORM
    decisions = parse_answer(_content_of(row, evidence)).decisions
    if [(each.approved, each.reason, each.arguments) for each in decisions] != [(True, "", None)]:
        return WRONG_FORM
    return find_flaw(use, people, evidence)


def _least_time(row: Row, evidence: Evidence) -> int:
    """Return the earliest possible time of ``row``: it cannot be older than the row before it."""
    before = evidence.row(row.seq - 1)
    return max(row.time, before.time if before is not None else 0)


def _content_of(row: Row, evidence: Evidence) -> str:
    """Return the content of ``row``; empty if it has none, or the checksum differs."""
    content = evidence.content(row.seq) or ""
    return content if hashlib.sha256(content.encode("utf-8", "replace")).hexdigest() == row.sha256 else ""


def _find_wrong_statement(
    row: Row, effect: Effect, rule: EffectRule, people: People, evidence: Evidence
) -> str:
    """Return the rule that the statement or signature of ``row`` breaks; empty if none."""
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
    # Check the signature before anything that needs queries, because anyone can write many rows.
    return (
        _find_difference(row, statement)
        or _find_wrong_signature(person, statement, str(row.detail[SIGNED]), signature)
        or _find_missing_right(row, effect, rule, person, statement, evidence, is_own=is_own)
        or _find_wrong_position(row, statement, people, evidence)
        or _find_wrong_subject(row, statement, evidence)
    )


def _find_difference(row: Row, statement: Mapping[str, Json]) -> str:
    """Return the rule that is broken if ``row`` differs from the signed statement; empty if it does not
    differ."""
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
    """Return the rule that is broken if ``row`` was copied from another place or journal; empty if it was not
    copied."""
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
    """Return the broken rule if ``row`` applies to other rows than the signed ones, else an empty text."""
    about = [[seq, leaf] for seq, leaf in _about(row.detail, evidence)]
    return "" if statement.get("about") == about else "decision_about"


def _is_own_rotation(row: Row, person: Person, evidence: Evidence) -> bool:
    """Whether ``row`` changes only the keys of ``person``."""
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
    """Return the rule that is broken if ``person`` has no right to this decision; empty if the person has the
    right."""
    if person.role == "viewer" or (rule.role == "owner" and person.role != "owner" and not is_own):
        return "decision_role"
    if person.expires is not None and _time_of(row, statement, evidence) > person.expires:
        return "decision_expired"
    if is_own or not (person.tools or person.agents):
        return ""
    asked = _find_asked(row, evidence) if effect in ("answer", "grant") else None
    request = _read_request(asked, evidence) if asked is not None else None
    if request is None or (effect == "answer" and asked is not None and asked.path != row.path):
        return "decision_limits"
    names = [call.name for call in request.calls]
    agent = row.path.partition("/")[0]
    is_tool = not person.tools or (bool(names) and all(_matches(each, person.tools) for each in names))
    is_agent = not person.agents or _matches(agent, person.agents)
    return "" if is_tool and is_agent else "decision_limits"


def _time_of(row: Row, statement: Mapping[str, Json], evidence: Evidence) -> float:
    """Return the earliest possible time of ``row``, in nanoseconds since the epoch.

    The row's own time is not trusted: the row cannot be older than its statement, or than the row before it.
    """
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
    """Return the person that ``row`` enrols, if that is an owner who enrols themselves; otherwise None."""
    person = parse_person(row.path, _content_of(row, evidence))
    is_own = person is not None and person.actor == row.actor and person.role == "owner"
    return person if is_own else None


def _position(newest: Row | None) -> list[Json]:
    return [newest.seq, hash_row(newest).hex()] if newest is not None and has_leaf(newest) else [0, ""]


def _about(detail: Mapping[str, Json], evidence: Evidence) -> Iterator[tuple[int, str]]:
    """Yield the number and leaf (hex) of each row that ``detail`` names."""
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
