"""Remote replicas: their form, the writes that they may contain, and the claims that are reported."""

from __future__ import annotations

import pytest
from watchroom import Json
from watchroom.algorithms.crdt import Document, FieldType, HybridClock, Stamp
from watchroom.algorithms.crdt.clock import MAX_DRIFT
from watchroom.algorithms.crdt.remote_state import (
    Claim,
    Writers,
    check_remote,
    collect_claims,
    count_known_operations,
    extract_fields,
)
from watchroom.errors import InvalidSchema, InvalidState

ALICE, BOB, ZOE = "alice#a1", "bob#b0", "zoe#e1"
SCHEMA: dict[str, FieldType] = {
    "title": "lww_register",
    "body": "rga",
    "tags": "or_set",
    "settings": "lww_map",
    "votes": "pn_counter",
}
HERE = Writers(frozenset({BOB}), frozenset({"alice", "bob"}), merger="alice")
NOBODY = Writers(frozenset(), frozenset(), merger="")
NOW = 10_000


def document(writer: str = ZOE) -> Document:
    """Return a document with a write to each field."""
    made = Document(SCHEMA, clock=HybridClock(lambda: 1000))
    made.register("title").set("Plan", made.stamp(writer))
    made.text("body").insert(0, "text", writer)
    made.set("tags").add("a", writer)
    made.map("settings").set("theme", "dark", made.stamp(writer))
    made.counter("votes").increment(2, writer)
    return made


def fields_of(made: Document) -> dict[str, Json]:
    return {name: made.field(name).state() for name in made.schema}


def check(theirs: dict[str, Json], ours: Document, writers: Writers = HERE, now: int = NOW) -> None:
    check_remote(SCHEMA, theirs, ours.state()["fields"], count_known_operations(ours, writers), writers, now)


@pytest.mark.parametrize(
    ("replica", "is_known"),
    [
        (BOB, True),
        ("bob#b1", True),
        (ALICE, False),
        ("human:dana#1", True),
        (ZOE, False),
        ("zoe", False),
    ],
)
def test_all_writes_of_who_works_here_are_known_but_those_of_who_brings_more(
    replica: str, is_known: bool
) -> None:
    assert HERE.includes(replica) is is_known


def test_the_fields_are_those_of_a_replica_with_this_schema() -> None:
    made = document()
    assert extract_fields(made.state(), SCHEMA) == made.state()["fields"]
    assert extract_fields({"schema": SCHEMA, "fields": {}, "more": 1}, SCHEMA) == {}
    one: dict[str, Json] = {"title": {}}
    assert extract_fields({"schema": SCHEMA, "fields": one}, SCHEMA) == one


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        ([], "shape"),
        ({"schema": SCHEMA}, "shape"),
        ({"fields": {}}, "shape"),
        ({"schema": SCHEMA, "fields": []}, "shape"),
        ({"schema": {}, "fields": {}}, "schema"),
        ({"schema": {"title": "none"}, "fields": {}}, "schema"),
        ({"schema": {"title": "lww_register"}, "fields": {}}, "schema"),
        ({"schema": SCHEMA, "fields": {"other": {}}}, "schema"),
    ],
)
def test_what_is_no_replica_of_this_document_is_refused(state: Json, rule: str) -> None:
    with pytest.raises(InvalidState) as refused:
        extract_fields(state, SCHEMA)
    assert refused.value.values["rule"] == f"state_{rule}"


def test_what_is_known_is_counted_of_the_writers_here() -> None:
    made = document(BOB)
    made.merge(fields_of(document(ZOE)))
    assert count_known_operations(made, HERE) == {
        "title": {BOB: (0, 0)},
        "body": {BOB: (4,)},
        "tags": {BOB: (1,)},
        "settings": {BOB: (0, 0)},
        "votes": {BOB: (2, 0)},
    }
    of_zoe = count_known_operations(made, NOBODY._replace(replicas=frozenset({ZOE})))
    assert of_zoe["votes"] == {ZOE: (2, 0)}


def test_claims_are_the_writes_to_registers_and_maps_of_the_writers_here() -> None:
    made = document(BOB)
    claims = collect_claims(SCHEMA, fields_of(made), HERE)
    assert claims == {
        Claim("title", "", f'{{"stamp":[1000,0,"{BOB}"],"value":"Plan"}}'),
        Claim("settings", "theme", f'{{"stamp":[1000,1,"{BOB}"],"value":"dark"}}'),
    }
    assert collect_claims(SCHEMA, fields_of(document(ZOE)), HERE) == set()
    assert collect_claims(SCHEMA, {"title": {}, "settings": {}}, HERE) == set()
    with pytest.raises(InvalidState):
        collect_claims(SCHEMA, [], HERE)
    with pytest.raises(InvalidSchema):
        collect_claims({}, {}, HERE)


def test_a_replica_of_others_is_welcome_and_so_is_what_is_known_already() -> None:
    ours = document(BOB)
    check(fields_of(document(ZOE)), ours)
    check(fields_of(document(ALICE)), ours)
    both = ours.copy()
    both.merge(fields_of(document(ZOE)))
    check(fields_of(both), ours)
    check({}, ours)


@pytest.mark.parametrize("name", ["body", "tags", "votes"])
@pytest.mark.parametrize("writer", [BOB, "bob#b7", "human:dana#1"])
def test_what_nobody_here_wrote_is_not_theirs_elsewhere(name: str, writer: str) -> None:
    forged = fields_of(document(writer))
    with pytest.raises(InvalidState) as refused:
        check({name: forged[name]}, Document(SCHEMA))
    assert refused.value.values == {"rule": "state_forged", "field": name}


@pytest.mark.parametrize("side", ["plus", "minus"])
def test_one_more_than_is_known_of_a_writer_here_is_forged(side: str) -> None:
    ours = document(BOB)
    ours.counter("votes").decrement(2, BOB)
    for count, is_forged in ((1, False), (2, False), (3, True)):
        told: dict[str, Json] = {"votes": {side: {BOB: count}}}
        if is_forged:
            with pytest.raises(InvalidState, match="votes"):
                check(told, ours)
        else:
            check(told, ours)


def test_a_replica_may_not_go_by_another_name_than_here() -> None:
    ours = document(BOB)
    theirs = fields_of(ours)
    body = theirs["body"]
    assert isinstance(body, dict)
    theirs["body"] = {**body, "by": ["zoe#b0"]}
    with pytest.raises(InvalidState) as refused:
        check(theirs, ours)
    assert refused.value.values == {"rule": "state_forged", "field": "body"}
    with pytest.raises(InvalidState) as refused:
        check(theirs, ours, NOBODY)
    assert refused.value.values == {"rule": "state_forged", "field": "body"}


def test_a_history_that_is_another_than_ours_is_forged_whoever_wrote_it() -> None:
    ours = Document(SCHEMA)
    ours.text("body").insert(0, "one", ZOE)
    theirs = Document(SCHEMA)
    theirs.text("body").insert(0, "two", ZOE)
    with pytest.raises(InvalidState) as refused:
        check({"body": theirs.text("body").state()}, ours)
    assert refused.value.values == {"rule": "state_forged", "field": "body"}


def test_a_text_with_a_gap_is_refused() -> None:
    theirs, late = Document(SCHEMA), Document(SCHEMA)
    theirs.text("body").insert(0, "one", ZOE)
    delta = theirs.text("body").insert(3, "two", ZOE).delta
    late.text("body").merge(delta)
    with pytest.raises(InvalidState) as refused:
        check({"body": late.text("body").state()}, Document(SCHEMA))
    assert refused.value.values == {"rule": "state_gap", "field": "body"}


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("name", ["title", "settings"])
def test_a_stamp_may_be_ahead_by_an_hour_and_no_more(name: str, ahead: int) -> None:
    theirs = Document(SCHEMA)
    stamp = Stamp(NOW + MAX_DRIFT + ahead, 0, ZOE)
    theirs.register("title").set("x", stamp) if name == "title" else theirs.map("settings").set("x", 1, stamp)
    told = {name: fields_of(theirs)[name]}
    assert MAX_DRIFT == 60 * 60 * 1000
    if ahead:
        with pytest.raises(InvalidState) as refused:
            check(told, Document(SCHEMA))
        assert refused.value.values == {"rule": "state_future", "field": name}
    else:
        check(told, Document(SCHEMA))


@pytest.mark.parametrize("fields", [{"other": {}}, {"title": 1}, []])
def test_what_cannot_be_merged_is_refused(fields: Json) -> None:
    with pytest.raises(InvalidState):
        check(fields, Document(SCHEMA))  # type: ignore[arg-type]
