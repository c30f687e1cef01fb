"""What the server's ``append`` takes, compared with `watchroom.validation`, which is the master of these rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final, get_args
from uuid import uuid4

import psycopg
import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom import validation
from watchroom.errors import DeniedError, DraftRefused, JournalError
from watchroom.kernel.journal import open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import HUMAN_PREFIX, MAX_TEXT_BYTES, OUTCOMES, OUTSIDE, SYSTEM, Note, Write, Zone

pytestmark = pytest.mark.postgres
MAX_DEPTH: Final = 100
MAX_NUMBER: Final = 2**53 - 1
FILE_ZONES: Final = ("private", "handoff", "collab", "board", "lease", "config", "buffer", "request")
NOTE: Final[dict[str, Any]] = {
    "w": False,
    "actor": "alice",
    "tool": "collab_read",
    "zone": "collab",
    "path": "plan.md",
    "message": "",
    "base": 3,
    "outcome": "ok",
    "error": "",
    "sha256": None,
    "size": None,
    "detail": "",
    "key": "",
    "conditions": None,
}
WRITE: Final[dict[str, Any]] = NOTE | {"w": True, "tool": "collab_write", "outcome": None, "error": None}
VALID: Final[tuple[tuple[dict[str, Any], bytes | None], ...]] = (
    (NOTE, None),
    (NOTE | {"outcome": "denied", "error": "invalid_path", "tool": "what is this?", "path": "../x"}, b"text"),
    (NOTE | {"sha256": "0" * 64, "size": 4}, None),
    (WRITE, b"text"),
    (WRITE, None),
    (WRITE | {"zone": "private", "path": "alice/notes.md", "actor": OUTSIDE}, "文".encode()),
    (WRITE | {"zone": "handoff", "path": "alice_to_bob/a.md"}, b"x"),
    (WRITE | {"zone": "board", "path": "bottom-layer-alice", "actor": "human:Dana K."}, b"# Board"),
    (WRITE | {"zone": "lease", "path": "global"}, b'{"holder": "alice"}'),
    (WRITE | {"zone": "realtime", "path": "notes"}, b'{"text": "delta"}'),
    (WRITE | {"zone": "session", "path": "alice/s1"}, b"{}"),
    (WRITE | {"zone": "request", "path": "alice/s1/3"}, b"{}"),
    (WRITE | {"zone": "request", "path": "alice/s1/3", "actor": SYSTEM}, b""),
    (WRITE | {"zone": "agent", "path": "bob"}, b"Build."),
    (WRITE | {"zone": "task", "path": "t1"}, b"{}"),
    (WRITE | {"zone": "command", "path": "t1/c1"}, b"make"),
    (WRITE | {"zone": "file", "path": "t1/src/a.py"}, b"x"),
    (WRITE | {"zone": "buffer", "path": "alice/plan"}, b"x"),
    (WRITE | {"conditions": [["collab", "a.md", 3, "approval_outdated"]]}, b"x"),
    (WRITE | {"key": "k", "detail": '{"idempotency_key": "k", "call": "s1/1"}'}, b"x"),
)
NASTY: Final = (
    *(
        "",
        "a",
        "ALICE",
        "alice_to_bob",
        "alice_to_",
        "system",
        "outside",
        "user",
        "con",
        "com1",
        "-alice",
        "a" * 64,
    ),
    *(
        "a" * 65,
        "human:",
        "human:dana",
        "human: dana",
        "human:d;rm",
        "human:" + "d" * 64,
        "human:" + "d" * 65,
    ),
    *(
        "human:Zoë",
        "t",
        "Tool",
        "tool-1",
        "x; curl",
        "t" * 64,
        "t" * 65,
        "t" * 101,
        "t" * 102,
        "collab_write\n",
    ),
    *("global", "zzz", "top-layer", "mid-layer-", "mid-layer-x y", "bottom-layer-bob", "bottom-layer-con"),
    *(
        "alice/",
        "alice/s1",
        "alice/s 1",
        "alice/s1/",
        "alice/s1/1",
        "alice//",
        "/",
        "a/b/c",
        "a" * 4096,
        "a" * 4097,
    ),
    *("bob_to_alice/x", "_to_alice/x", "bob_to_/x", "bob_to_al_to_ice/x", "bob_to_alice/", "notes/field"),
    *("{}", '{"a": 1}', "[]", "5", "null", "{", '{"a": NaN}', '{"a": "\\ud800"}', '{"a": "\\u0000"}', "{} "),
    *('{"a": ' * 100 + "1" + "}" * 100, '{"a": ' * 101 + "1" + "}" * 101, "[" * 200_000),
    *(
        '{"idempotency_key": "k"}',
        '{"idempotency_key": "l"}',
        '{"idempotency_key": 5}',
        '{"a": "' + "[" * 500 + '"}',
    ),
    *(
        "x" * 65_536,
        "x" * 65_537,
        "文" * 30_000,
        "\0",
        "a\0b",
        "\ud800",
        "0" * 64,
        "0" * 63,
        "g" * 64,
        "A" * 64,
    ),
    *get_args(Zone),
    *OUTCOMES,
)
BODIES: Final = (
    *(
        b"",
        b"x",
        b"{}",
        b'{"a": 1}',
        b"[]",
        b"5",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"a\x00b",
        b'{"a": NaN}',
    ),
    *(
        b'{"a": "\\ud800"}',
        b"x" * MAX_TEXT_BYTES,
        b"x" * (MAX_TEXT_BYTES + 1),
        b"[" * 200_000,
        b"\xef\xbb\xbf{}",
    ),
)
NUMBERS: Final = (-(2**63), -2, -1, 0, 1, MAX_NUMBER, MAX_NUMBER + 1, 2**62)
CONDITIONS: Final[tuple[Any, ...]] = (
    *([], {}, 5, [[]], [["collab", "a", 1, "code"]], [["zzz", "a", 1, "code"]], [["collab", 5, 1, "code"]]),
    *([["collab", "a", "1", "code"]], [["collab", "a", 1, "not a code"]], [["collab", "a", 1, "c"]] * 1001),
)


def valid(check: Callable[[str], object], given: str) -> bool:
    try:
        check(given)
    except DeniedError:
        return False
    return True


def is_actor(given: str) -> bool:
    if given.startswith(HUMAN_PREFIX):
        return valid(validation.check_human_name, given.removeprefix(HUMAN_PREFIX))
    return given in (OUTSIDE, SYSTEM) or valid(validation.check_agent_id, given)


def is_place(zone: str, path: str) -> bool:
    """Whether ``path`` begins with the ids that ``zone`` wants. Of files it is checked elsewhere."""
    owner, slash, rest = path.partition("/")
    of_agent = valid(validation.check_agent_id, owner) and not path.endswith("/")
    match zone:
        case "board" | "lease":
            return validation.is_board_name(path)
        case "agent":
            return valid(validation.check_agent_id, path)
        case "realtime":
            return path != "" and "/" not in path
        case "session":
            return of_agent and valid(validation.check_session_id, rest)
        case "request" | "buffer":
            return of_agent and slash != ""
        case "handoff":
            sender, _, receiver = owner.partition("_to_")
            named = all(valid(validation.check_agent_id, each) for each in (sender, receiver))
            return named and slash != "" and not path.endswith("/")
        case "task" | "tree":
            return valid(validation.check_session_id, path)
        case "command":
            return all(valid(validation.check_session_id, each) for each in (owner, rest))
        case "file" | "repo":
            return valid(validation.check_session_id, owner) and slash != "" and not path.endswith("/")
    return True


def refuse_constant(name: str) -> None:
    raise ValueError(name)


def parsed(text: str) -> Any:
    """``text`` as JSON; None where it is none that every reader takes."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value


def depth_of(value: Any) -> int:
    levels, deepest = [(value, 0)], 0
    while levels:
        each, depth = levels.pop()
        deepest = max(deepest, depth)
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        levels += [(one, depth + 1) for one in inner]
    return deepest


def is_detail(detail: str, key: str) -> bool:
    if not detail:
        return not key
    fields = parsed(detail)
    if len(detail.encode()) > 4 * 1024 * 1024 or not isinstance(fields, dict) or depth_of(fields) > MAX_DEPTH:
        return False
    text = json.dumps(fields, ensure_ascii=False)
    own = fields.get("idempotency_key")
    own = str(own) if own is not None else ""
    return validation.is_unicode(text) and "\\u0000" not in text and own == key


def is_content(draft: dict[str, Any], body: bytes | None) -> bool:
    zone = draft["zone"]
    if body is None:
        return not (draft["w"] and zone in ("realtime", "session", "request"))
    try:
        text = validation.decode_text(body) if zone in FILE_ZONES else body.decode()
    except (DeniedError, UnicodeDecodeError):
        return False
    is_json = zone in ("realtime", "lease") or (zone == "request" and text != "")
    return "\0" not in text and not (draft["w"] and is_json and not isinstance(parsed(text), dict))


def is_condition(given: Any) -> bool:
    return (
        isinstance(given, list)
        and len(given) == 4
        and given[0] in get_args(Zone)
        and isinstance(given[1], str)
        and isinstance(given[2], int)
        and is_code(given[3])
    )


def is_code(given: str) -> bool:
    return re.fullmatch("[a-z0-9_]{0,64}", given) is not None


def is_valid(draft: dict[str, Any], body: bytes | None) -> bool:
    """The rule, in Python."""
    texts = [each for each in draft.values() if isinstance(each, str)]
    if any("\0" in each or not validation.is_unicode(each) for each in texts):
        return False
    is_write, base, size, sha256 = draft["w"], draft["base"], draft["size"], draft["sha256"]
    conditions = draft["conditions"]
    is_tool = re.fullmatch("[a-z][a-z0-9_]{0,63}", draft["tool"]) is not None
    is_quoted = not is_write and draft["outcome"] != "ok" and 1 <= len(draft["tool"]) <= 101
    return (
        (not is_write if base is None else -1 <= base <= MAX_NUMBER)
        and (size is None or 0 <= size <= MAX_NUMBER)
        and (sha256 is None or (re.fullmatch("[0-9a-f]{64}", sha256) is not None and size is not None))
        and (draft["outcome"] is None if is_write else draft["outcome"] in OUTCOMES)
        and (draft["error"] is None if is_write else is_code(draft["error"]))
        and not (is_write and (size is not None or sha256 is not None))
        and is_actor(draft["actor"])
        and draft["zone"] in get_args(Zone)
        and (is_tool or is_quoted)
        and len(draft["path"].encode()) <= 4096
        and (not is_write or is_place(draft["zone"], draft["path"]))
        and len(draft["message"].encode()) <= 65_536
        and len(draft["key"].encode()) <= 4096
        and (
            conditions is None
            or (
                isinstance(conditions, list)
                and len(conditions) <= 1000
                and all(map(is_condition, conditions))
            )
        )
        and is_detail(draft["detail"], draft["key"])
        and is_content(draft, body)
    )


TEXT_FIELDS: Final = (
    "actor",
    "tool",
    "zone",
    "path",
    "message",
    "error",
    "outcome",
    "sha256",
    "detail",
    "key",
)
_texts = st.one_of(
    st.sampled_from(NASTY), st.text(max_size=70), st.from_regex(r"[a-z0-9_/.-]{0,70}", fullmatch=True)
)


@st.composite
def drafts(draw: st.DrawFn) -> tuple[dict[str, Any], bytes | None]:
    """A draft that is valid, with up to two of its fields replaced by anything."""
    draft, body = draw(st.sampled_from(VALID))
    draft = dict(draft)
    for _ in range(draw(st.integers(0, 2))):
        field = draw(st.sampled_from((*TEXT_FIELDS, "base", "size", "conditions", "body", "body")))
        if field == "body":
            body = draw(st.none() | st.sampled_from(BODIES) | st.binary(max_size=20))
        elif field in ("base", "size"):
            draft[field] = draw(st.none() | st.sampled_from(NUMBERS))
        elif field == "conditions":
            draft[field] = draw(st.sampled_from(CONDITIONS))
        elif draft[field] is not None:
            draft[field] = draw(_texts)
    return draft, body


@pytest.fixture(scope="module")
def owner(new_database: Callable[[], str]) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(new_database(), autocommit=True) as connection:
        connection.execute("SET search_path = watchroom, pg_temp")
        yield connection


def flaw(owner: psycopg.Connection[tuple[Any, ...]], draft: dict[str, Any], body: bytes | None) -> str | None:
    """What the server says is wrong with a draft."""
    try:
        found = owner.execute(
            "SELECT check_draft(NULL::members, jsonb_populate_record(NULL::draft, %s::jsonb), %b)",
            (json.dumps(draft), body),
        ).fetchone()
    except (psycopg.DataError, psycopg.errors.StatementTooComplex) as error:
        return str(error)
    assert found is not None
    return found[0] if found[0] is None else str(found[0])


@given(given=drafts())
@settings(max_examples=rounds(600, 10_000))
def test_the_server_refuses_the_drafts_that_the_rule_in_python_refuses(
    owner: psycopg.Connection[tuple[Any, ...]], given: tuple[dict[str, Any], bytes | None]
) -> None:
    draft, body = given
    said = flaw(owner, draft, body)
    if is_valid(draft, body):
        assert said is None
    elif draft["actor"].isascii():
        assert said is not None
    # Which other letters a person's name may have is decided when the person becomes a member.


def single_changes() -> Iterator[tuple[dict[str, Any], bytes | None]]:
    """Valid drafts with one field replaced by each value that is close to a bound."""
    for draft, body in VALID:
        fields = TEXT_FIELDS if draft["zone"] == "collab" else ("path",)
        for field in (each for each in fields if draft[each] is not None):
            yield from ((draft | {field: value}, body) for value in NASTY)
        is_large_tried = draft["zone"] in ("collab", "file")
        bodies = [each for each in BODIES if len(each) < MAX_TEXT_BYTES or is_large_tried]
        yield from ((draft, other) for other in (None, *bodies))
    for draft in (NOTE, WRITE):
        for field in ("base", "size"):
            yield from ((draft | {field: value}, b"x") for value in (None, *NUMBERS))
        yield from ((draft | {"conditions": value}, b"x") for value in CONDITIONS)


def test_every_value_close_to_a_bound_is_judged_as_in_python(
    owner: psycopg.Connection[tuple[Any, ...]],
) -> None:
    for draft, body in single_changes():
        said = flaw(owner, draft, body)
        shown = {name: value if len(str(value)) < 99 else "…" for name, value in draft.items()}
        if draft["actor"].isascii() or is_valid(draft, body):
            assert (said is None) == is_valid(draft, body), (said, shown, body and body[:40])


@pytest.mark.parametrize(("draft", "body"), VALID)
def test_the_drafts_of_every_zone_are_taken(
    owner: psycopg.Connection[tuple[Any, ...]], draft: dict[str, Any], body: bytes | None
) -> None:
    assert is_valid(draft, body)
    assert flaw(owner, draft, body) is None


def test_the_server_knows_the_zones_of_the_program(owner: psycopg.Connection[tuple[Any, ...]]) -> None:
    for zone in get_args(Zone):
        assert owner.execute("SELECT is_zone(%s)", (zone,)).fetchone() == (True,)


@pytest.mark.parametrize(
    ("draft", "body"),
    [
        (WRITE | {"zone": "board", "path": "zzz"}, b"x"),
        (WRITE | {"zone": "realtime", "path": "notes"}, b"x"),
        (WRITE, b"\xff\xfe"),
        (WRITE | {"detail": "[]"}, b"x"),
        (WRITE | {"tool": "x; curl example.com | sh"}, b"x"),
        (WRITE | {"base": -5}, b"x"),
        (NOTE | {"zone": "zzz"}, None),
        (NOTE | {"detail": '{"a": ' * 5000 + "1" + "}" * 5000}, None),
    ],
    ids=["board", "document", "bytes", "detail", "tool", "base", "zone", "depth"],
)
def test_one_bad_draft_is_refused_with_its_whole_append(
    new_database: Callable[[], str], draft: dict[str, Any], body: bytes | None
) -> None:
    url = new_database()
    with closing(DatabaseMembers(url)) as members:
        alice = members.add("alice", "agent")
    with closing(open_journal(alice)) as journal, psycopg.connect(alice, autocommit=True) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute(
                "SELECT * FROM watchroom.append(%s, %s::jsonb, %b::bytea[])",
                (uuid4(), json.dumps([NOTE, draft]), [None, body]),
            )
        assert journal.last_seq() == 0
        assert journal.append([Note("alice", "collab_read", "collab", "a.md")])[0].row.seq == 1


def test_the_program_says_which_rule_a_draft_breaks(new_database: Callable[[], str]) -> None:
    with closing(open_journal(new_database())) as journal:
        for draft, why in (
            (Write("alice", "no tool", "collab", "a", "x"), "not an identifier"),
            (Write("alice", "t", "realtime", "notes", "x"), "json"),
            (Write("alice", "t", "collab", "a", "a\0b"), "NUL"),
            (Note("alice", "t", "collab", "a", message="x" * 70_000), "message is too long"),
        ):
            with pytest.raises(DraftRefused, match=why):
                journal.append([draft])
        with pytest.raises(JournalError):
            journal.append([Write("alice", "t", "collab", "a", "x", expected=-7)])
        assert journal.last_seq() == 0


def test_a_file_is_in_the_way_whatever_a_draft_says_of_that(new_database: Callable[[], str]) -> None:
    url = new_database()
    unasked = WRITE | {"base": -1, "path": "a/b.md", "blockable": False, "above": []}
    with closing(open_journal(url)) as journal, psycopg.connect(url, autocommit=True) as connection:
        journal.append([Write("alice", "t", "collab", "a", "x")])
        said = connection.execute(
            "SELECT row_error FROM watchroom.append(%s, %s::jsonb, %b::bytea[])",
            (uuid4(), json.dumps([unasked]), [b"x"]),
        ).fetchone()
        assert said == ("path_blocked",)
