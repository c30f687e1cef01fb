"""Malformed states are refused as a whole, with the broken rule."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable

import pytest
from watchroom import Json
from watchroom.algorithms.crdt import Document, FieldType, Stamp, Text
from watchroom.algorithms.crdt.clock import agent_of, name_replica, peer_of
from watchroom.algorithms.crdt.state_checks import (
    MAX_COUNT,
    MAX_KEY,
    canonical_json,
    check_fields,
    check_key,
    check_natural,
    check_replica_name,
    utf8_size,
)
from watchroom.errors import InvalidSchema, InvalidState, NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES

ALICE = "alice#a1"
STAMP: Json = [1, 0, ALICE]
LONG = "k" * MAX_KEY


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def packed(data: bytes) -> str:
    return encoded(zlib.compress(data))


MALFORMED: list[tuple[FieldType, Json, str]] = [
    ("lww_register", [], "shape"),
    ("lww_register", None, "shape"),
    ("lww_register", {"value": 1}, "shape"),
    ("lww_register", {"stamp": STAMP}, "shape"),
    ("lww_register", {"value": 1, "stamp": STAMP, "more": 1}, "shape"),
    ("lww_register", {"removed": True, "stamp": STAMP}, "shape"),
    ("lww_register", {"removed": False, "stamp": STAMP}, "shape"),
    ("lww_register", {"value": 1, "stamp": [1, 0]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [1, 0, ALICE, 1]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": {"0": 1}}, "stamp"),
    ("lww_register", {"value": 1, "stamp": "10a"}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [-1, 0, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [0, -1, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [MAX_COUNT + 1, 0, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [0, MAX_COUNT + 1, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [True, 0, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [1.0, 0, ALICE]}, "stamp"),
    ("lww_register", {"value": 1, "stamp": [1, 0, ""]}, "replica"),
    ("lww_register", {"value": 1, "stamp": [1, 0, 5]}, "replica"),
    ("lww_register", {"value": "\ud800", "stamp": STAMP}, "value"),
    ("lww_register", {"value": "a\0b", "stamp": STAMP}, "value"),
    ("lww_register", {"value": "x" * MAX_TEXT_BYTES, "stamp": STAMP}, "value"),
    ("lww_map", [], "shape"),
    ("lww_map", {"a": 1}, "shape"),
    ("lww_map", {1: {"value": 1, "stamp": STAMP}}, "shape"),  # type: ignore[dict-item]
    ("lww_map", {"": {"value": 1, "stamp": STAMP}}, "key"),
    ("lww_map", {LONG + "k": {"value": 1, "stamp": STAMP}}, "key"),
    ("lww_map", {"a\0": {"value": 1, "stamp": STAMP}}, "key"),
    ("lww_map", {"\ud800": {"value": 1, "stamp": STAMP}}, "key"),
    ("lww_map", {"a": {"removed": 1, "stamp": STAMP}}, "shape"),
    ("lww_map", {"a": {"removed": True, "stamp": STAMP, "value": 1}}, "shape"),
    ("or_set", {}, "shape"),
    ("or_set", {"elements": []}, "shape"),
    ("or_set", {"elements": {}, "more": 1}, "shape"),
    ("or_set", {"elements": {"a": []}}, "shape"),
    ("or_set", {"elements": {}, "context": []}, "shape"),
    ("or_set", {"elements": {}, "cloud": {}}, "shape"),
    ("or_set", {"elements": {}, "cloud": [1]}, "shape"),
    ("or_set", {"elements": {}, "cloud": [[ALICE]]}, "shape"),
    ("or_set", {"elements": {}, "cloud": [[ALICE, 1, 1]]}, "shape"),
    ("or_set", {"elements": {}, "cloud": [[ALICE, 0]]}, "count"),
    ("or_set", {"elements": {}, "cloud": [[ALICE, -1]]}, "count"),
    ("or_set", {"elements": {}, "cloud": [["", 1]]}, "replica"),
    ("or_set", {"elements": {}, "context": {ALICE: -1}}, "count"),
    ("or_set", {"elements": {}, "context": {"": 1}}, "replica"),
    ("or_set", {"elements": {"a": {}}}, "dots"),
    ("or_set", {"elements": {"a": {ALICE: 1}}}, "dots"),
    ("or_set", {"elements": {"a": {ALICE: 2}}, "context": {ALICE: 1}}, "dots"),
    ("or_set", {"elements": {"a": {ALICE: 2}}, "cloud": [[ALICE, 1]]}, "dots"),
    ("or_set", {"elements": {"a": {ALICE: 1}, "b": {ALICE: 1}}, "context": {ALICE: 1}}, "dots"),
    ("or_set", {"elements": {"x" * 10_001: {ALICE: 1}}, "context": {ALICE: 1}}, "key"),
    ("or_set", {"elements": {"\ud800": {ALICE: 1}}, "context": {ALICE: 1}}, "key"),
    ("pn_counter", [], "shape"),
    ("pn_counter", {"more": {}}, "shape"),
    ("pn_counter", {"plus": []}, "shape"),
    ("pn_counter", {"plus": {ALICE: -1}}, "count"),
    ("pn_counter", {"minus": {ALICE: MAX_COUNT + 1}}, "count"),
    ("pn_counter", {"plus": {"": 1}}, "replica"),
    ("rga", [], "shape"),
    ("rga", {}, "shape"),
    ("rga", {"ops": 1, "by": ALICE}, "shape"),
    ("rga", {"ops": "!", "by": ALICE}, "base64"),
    ("rga", {"ops": "é", "by": ALICE}, "base64"),
    ("rga", {"ops": "AAA", "by": ALICE}, "base64"),
    ("rga", {"ops": "AA==", "by": ALICE}, "text"),
    ("rga", {"ops": "AA==", "by": "alice"}, "replica"),
    ("rga", {"ops": "AA==", "by": "#a1"}, "replica"),
    ("rga", {"ops": "AA==", "by": "alice#0"}, "replica"),
    ("rga", {"ops": "AA==", "by": "alice#A1"}, "replica"),
    ("rga", {"ops": "AA==", "by": "alice#0a"}, "replica"),
    ("rga", {"ops": "AA==", "by": "alice#x"}, "replica"),
    ("rga", {"ops": "AA==", "by": "alice#10000000000000000"}, "replica"),
    ("rga", {"ops": "AA==", "by": 1}, "replica"),
    ("rga", {"history": 1, "by": []}, "shape"),
    ("rga", {"history": encoded(b"no zlib"), "by": []}, "text"),
    ("rga", {"history": packed(b"no history"), "by": []}, "text"),
    ("rga", {"history": encoded(zlib.compress(b"")[:-1]), "by": []}, "text"),
    ("rga", {"history": encoded(zlib.compress(b"") + b"."), "by": []}, "text"),
    ("rga", {"history": packed(b""), "by": {}}, "shape"),
    ("rga", {"history": packed(b""), "by": [1]}, "replica"),
    ("rga", {"history": packed(b""), "by": [], "more": 1}, "shape"),
    ("rga", {"history": packed(b""), "by": [], "waiting": 1}, "shape"),
    ("rga", {"history": packed(b""), "by": ["alice"]}, "replica"),
]


@pytest.mark.parametrize(
    ("kind", "state", "rule"), MALFORMED, ids=[f"{kind} {n}" for n, (kind, *_) in enumerate(MALFORMED)]
)
def test_what_is_no_state_is_refused_by_its_rule(kind: FieldType, state: Json, rule: str) -> None:
    document = Document({"field": kind})
    before = document.state()
    with pytest.raises(InvalidState) as refused:
        document.merge({"field": state})
    assert refused.value.values == {"rule": f"state_{rule}", "field": "field"}
    assert document.state() == before


@pytest.mark.parametrize(
    ("kind", "state", "value"),
    [
        ("lww_register", {}, None),
        ("lww_register", {"value": "x", "stamp": [0, 0, "a"]}, "x"),
        ("lww_register", {"value": "x", "stamp": [MAX_COUNT, MAX_COUNT, LONG]}, "x"),
        ("lww_map", {}, {}),
        ("lww_map", {LONG: {"value": 1, "stamp": STAMP}, "b": {"removed": True, "stamp": STAMP}}, {LONG: 1}),
        ("or_set", {"elements": {}}, []),
        ("or_set", {"elements": {"a": {ALICE: 1}}, "cloud": [[ALICE, 1]]}, ["a"]),
        ("or_set", {"elements": {"a": {ALICE: 2}}, "context": {ALICE: 2}}, ["a"]),
        ("or_set", {"elements": {"x" * 10_000: {ALICE: 1}}, "context": {ALICE: 1}}, ["x" * 10_000]),
        ("or_set", {"elements": {}, "context": {ALICE: 0}}, []),
        ("pn_counter", {}, 0),
        ("pn_counter", {"plus": {ALICE: MAX_COUNT}, "minus": {ALICE: 0}}, MAX_COUNT),
    ],
)
def test_a_state_at_its_bounds_is_merged(kind: FieldType, state: Json, value: Json) -> None:
    document = Document({"field": kind})
    document.merge({"field": state})
    assert document.values() == {"field": value}


@pytest.mark.parametrize(
    ("state", "is_natural"),
    [
        (0, True),
        (MAX_COUNT, True),
        (-1, False),
        (MAX_COUNT + 1, False),
        (True, False),
        (1.0, False),
        ("1", False),
    ],
)
def test_a_whole_number_is_one_that_every_reader_of_json_keeps(state: Json, is_natural: bool) -> None:
    if is_natural:
        assert check_natural(state, "count") == state
    else:
        with pytest.raises(InvalidState, match="not an integer"):
            check_natural(state, "count")


@pytest.mark.parametrize("check", [check_key, check_replica_name])
def test_a_name_has_1_to_1000_characters_that_are_text(check: Callable[[Json], str]) -> None:
    for name in ("a", LONG, "计划"):
        assert check(name) == name
    for bad in ("", LONG + "k", "a\0b", "\udc80", 1, None):
        with pytest.raises(InvalidState):
            check(bad)


def test_fields_are_those_that_are_required_and_none_beside_the_optional_ones() -> None:
    required, optional = frozenset({"a"}), frozenset({"b"})
    for state in ({"a": 1}, {"a": 1, "b": 2}):
        assert check_fields(state, "shape", required, optional) == state
    others: list[Json] = [{}, {"b": 2}, {"a": 1, "c": 3}, [], "a", None]
    for bad in others:
        with pytest.raises(InvalidState):
            check_fields(bad, "shape", required, optional)


def test_equal_values_have_one_json_of_10_mb_at_most_and_without_nul() -> None:
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'
    for text in ("\\u0000", "\\\\u0000", "u0000"):
        assert json.loads(canonical_json(text)) == text
    with_nul: list[Json] = ["\0", "\\\0", {"a\0": 1}]
    for bad in with_nul:
        with pytest.raises(NotText, match="NUL"):
            canonical_json(bad)
    most = "x" * (MAX_TEXT_BYTES - 2)
    assert len(canonical_json(most)) == MAX_TEXT_BYTES
    with pytest.raises(TooLarge):
        canonical_json(most + "x")
    deep: list[Json] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotText):
        canonical_json(deep)


@pytest.mark.parametrize(("text", "size"), [("", 0), ("ab", 2), ("é", 2), ("文", 3), ("🙂", 4)])
def test_the_size_of_a_text_is_that_of_its_utf_8(text: str, size: int) -> None:
    assert utf8_size(text) == size


def test_a_replica_is_named_after_its_agent_and_its_number() -> None:
    assert name_replica("alice", 161) == ALICE
    assert [agent_of(name) for name in (ALICE, "alice", "a#b#c")] == ["alice", "alice", "a"]
    assert [peer_of(name) for name in (ALICE, "alice", "a#b#c")] == ["a1", "", "b#c"]
    assert Stamp.from_json(Stamp(1, 2, ALICE).as_json()) == Stamp(1, 2, ALICE)


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({}, "size"),
        ([], "size"),
        (None, "size"),
        ({str(n): "rga" for n in range(101)}, "size"),
        ({"": "rga"}, "name"),
        ({" ": "rga"}, "name"),
        ({"a/b": "rga"}, "name"),
        ({"a\n": "rga"}, "name"),
        ({"a" * 101: "rga"}, "name"),
        ({1: "rga"}, "name"),
        ({"a": "text"}, "type"),
        ({"a": 1}, "type"),
        ({"a": ["rga"]}, "type"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(schema: object, rule: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        Document(schema)  # type: ignore[arg-type]
    assert refused.value.values["rule"] == f"schema_{rule}"


def test_a_schema_may_have_100_fields_with_names_of_100_characters() -> None:
    names = [f"{n:0100}" for n in range(100)]
    assert [*Document(dict.fromkeys(names, "lww_register")).schema] == names


@pytest.mark.parametrize("part", ["values", "fields"])
def test_a_whole_state_has_all_fields_of_its_schema_and_no_others(part: str) -> None:
    whole = Document({"title": "lww_register", "votes": "pn_counter"}).state()
    assert Document.from_state(whole).state() == whole
    others = (("title",), ("title", "votes", "more"), ("title", "more"))
    for fields in (dict.fromkeys(names) for names in others):
        with pytest.raises(InvalidState) as refused:
            Document.from_state({**whole, part: fields})
        assert refused.value.values["rule"] == "state_schema"


@pytest.mark.parametrize("value", ["half \ud83d of a character", "a\0b"])
def test_a_text_that_comes_with_its_history_can_be_stored(value: str) -> None:
    whole = Document({"body": "rga"}).state()
    with pytest.raises(InvalidState) as refused:
        Document.from_state({**whole, "values": {"body": value}})
    assert refused.value.values["rule"] == "state_text"


def test_an_edit_that_changes_nothing_has_no_delta() -> None:
    text = Text()
    text.insert(0, "one", ALICE)
    before = text.version_vector()
    for edit in (text.insert(2, "", ALICE), text.delete(2, 2, ALICE), text.delete(2, 1, ALICE)):
        assert edit == (2, 0, 0, None)
    assert text.version_vector() == before


@pytest.mark.parametrize(
    "change", [lambda packed: packed[:-1], lambda packed: packed + b"x"], ids=["cut", "more"]
)
def test_a_history_that_is_packed_otherwise_is_refused(change: Callable[[bytes], bytes]) -> None:
    text = Text()
    text.insert(0, "one", ALICE)
    state = dict(text.state())
    history = base64.b64decode(str(state["history"]))
    Text().merge(state)
    with pytest.raises(InvalidState, match="text"):
        Text().merge({**state, "history": encoded(change(history))})
