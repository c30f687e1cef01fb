"""What comes from a broken or wicked replica is refused in words and changes nothing, or it is taken over."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replicating import ALL, SCHEMAS, Edit, evidence, fields, new_document, perform, restarted
from watchroom import Json
from watchroom.crdt import Document, FieldType, Text
from watchroom.crdt.checkpoint import Checkpoint, is_checkpoint_of, parse_checkpoint, render_checkpoint
from watchroom.crdt.errors import FieldNotFound, InvalidSchema, InvalidState

Schema = Mapping[str, FieldType]
ALICE, BOB, CAROL, DAVE = "alice#a1", "bob#b2", "carol#c3", "dave#d4"
EDITS: Final = {
    "title": Edit("title", "set", ("看板",)),
    "body": Edit("body", "insert", (3, "two 🙂")),
    "tags": Edit("tags", "add", ("urgent",)),
    "settings": Edit("settings", "set", ("theme", {"dark": [True, None]})),
    "votes": Edit("votes", "increment", (3,)),
}

of_each_type = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
fuzzing = settings(max_examples=80)
numbers = st.integers() | st.floats() | st.sampled_from((-1, 2**53, 2**63, 2**64, 10**400, 1e308, -0.0, True))
wild = st.recursive(
    st.none() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def filled(schema: Schema, *replicas: str) -> Document:
    """A document in which each of the replicas wrote into each field."""
    document = new_document(schema)
    for replica in replicas:
        for name in schema:
            perform(document, EDITS[name], replica)
    return document


def offered(document: Document, broken: Json) -> None:
    """The document takes it over whole, or refuses it and stays as it was; and works in either case."""
    before, alone = evidence(document), fields(document)
    refused = False
    try:
        document.merge(broken)
    except (InvalidState, FieldNotFound):
        refused = True
    other = fields(filled(document.schema, CAROL))
    if refused:
        assert evidence(document) == before
        expected = Document(document.schema)
        expected.merge(alone)
        expected.merge(other)
        document.merge(other)
        assert evidence(document) == evidence(expected)
    for name in document.schema:
        perform(document, EDITS[name], DAVE)
    assert evidence(restarted(document)) == evidence(document)


@st.composite
def broken_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """Cut off, with bits flipped, with something put in, or nothing of it at all."""
    at = draw(st.integers(0, len(whole) - 1))
    match draw(st.sampled_from(("cut", "flip", "put in", "other"))):
        case "cut":
            return whole[:at]
        case "flip":
            bits = draw(st.integers(1, 255))
            return whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]
        case "put in":
            return whole[:at] + draw(st.binary(min_size=1, max_size=9)) + whole[at:]
        case _:
            return draw(st.sampled_from((b"", whole[:4], whole[:20]))) + draw(st.binary(max_size=60))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@of_each_type
@fuzzing
@given(data=st.data())
def test_anything_in_the_place_of_a_fields_state(schema: Schema, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(schema)))
    offered(filled(schema, ALICE), {name: data.draw(wild)})


@of_each_type
@fuzzing
@given(data=st.data())
def test_anything_somewhere_in_a_state(schema: Schema, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(schema)))
    state = fields(filled(schema, BOB))
    here = state
    key: str = name
    while True:
        inner = here[key]
        if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
            break
        here, key = inner, data.draw(st.sampled_from(sorted(inner)))
    here[key] = data.draw(wild)
    offered(filled(schema, ALICE), {name: state[name]})


@fuzzing
@given(delta=wild)
def test_anything_in_the_place_of_a_delta(delta: Json) -> None:
    document = filled(ALL, ALICE)
    before = evidence(document)
    if delta != {}:
        with pytest.raises((InvalidState, FieldNotFound)):
            document.merge(delta)
    assert evidence(document) == before


@settings(max_examples=200)
@given(data=st.data())
def test_broken_bytes_in_a_texts_delta(data: st.DataObject) -> None:
    other = filled({"body": "rga"}, BOB)
    delta = perform(other, Edit("body", "replace", (0, 2, "later")), BOB)["body"]
    assert isinstance(delta, dict)
    ops = data.draw(broken_bytes(base64.b64decode(str(delta["ops"]))))
    offered(filled({"body": "rga"}, ALICE), {"body": {"ops": encoded(ops), "by": BOB}})


@settings(max_examples=200)
@given(data=st.data())
def test_broken_bytes_in_a_texts_history(data: st.DataObject) -> None:
    state = filled({"body": "rga"}, ALICE, BOB).text("body").state()
    packed = base64.b64decode(str(state["history"]))
    history = zlib.decompress(packed)
    other_way = st.sampled_from(("history", "waiting", "packed", "base64"))
    match data.draw(other_way):
        case "history":
            broken = {"history": encoded(zlib.compress(data.draw(broken_bytes(history))))}
        case "waiting":
            broken = {"waiting": encoded(data.draw(broken_bytes(history)))}
        case "packed":
            broken = {"history": encoded(data.draw(broken_bytes(packed)))}
        case _:
            text = data.draw(broken_bytes(str(state["history"]).encode()))
            broken = {"history": text.decode("latin-1")}
    offered(filled({"body": "rga"}, CAROL), {"body": {**state, **broken}})


@settings(max_examples=200)
@given(data=st.data())
def test_broken_states_of_documents(data: st.DataObject) -> None:
    """A replica's own state is trusted to hold what it says; even so nothing but a refusal comes of it."""
    text = json.dumps(filled(ALL, ALICE, BOB).state(), ensure_ascii=False).encode()
    try:
        state = json.loads(data.draw(broken_bytes(text)))
    except ValueError:
        state = data.draw(wild | st.fixed_dictionaries({"schema": wild, "values": wild, "fields": wild}))
    with suppress(InvalidState, InvalidSchema):
        document = Document.from_state(state)
        for name in document.schema.keys() & EDITS.keys():
            perform(document, EDITS[name], CAROL)
        document.state()


def test_a_history_that_unfolds_without_end_is_refused() -> None:
    packing = zlib.compressobj(1)
    block = bytes(2**20)
    packed = b"".join([packing.compress(block) for _ in range(300)]) + packing.flush()
    offered(filled({"body": "rga"}, ALICE), {"body": {"history": encoded(packed), "by": []}})


@pytest.mark.parametrize("schema", [{name: kind} for name, kind in ALL.items()], ids=ALL)
def test_a_state_that_is_nested_without_end_is_refused(schema: Schema) -> None:
    deep: dict[str, Json] = {}
    for _ in range(100_000):
        deep = {"elements": deep}
    document = filled(schema, ALICE)
    before = evidence(document)
    (name,) = schema
    written: dict[str, Json] = {"value": deep, "stamp": [1, 0, BOB]}
    by_key: dict[str, Json] = {"theme": written}
    for state in (deep, written, by_key):
        with pytest.raises(InvalidState):
            document.merge({name: state})
    assert evidence(document) == before


@settings(max_examples=200)
@given(
    moment=st.binary(max_size=12) | st.lists(st.sampled_from(b"\0\1\2\3\x08\x1e\x7f\x80\xa1\xff")).map(bytes)
)
@example(moment=b"\3\xa1\1\2\xa1\1\x5f\x1e\xff\xff\xff\xff\x0f")
def test_a_moment_is_refused_or_shows_what_was(moment: bytes) -> None:
    text = Text()
    text.insert(0, "hello", ALICE)
    before = text.state()
    with suppress(InvalidState):
        assert "hello".startswith(text.copy(moment).value)
    assert text.state() == before
    assert text.insert(0, "x", ALICE).position == 0


@settings(max_examples=200)
@given(
    cut=st.integers(0, 400),
    flip=st.integers(0, 10_000),
    bits=st.integers(1, 255),
    noise=st.binary(max_size=40),
)
def test_a_broken_checkpoint_is_refused(cut: int, flip: int, bits: int, noise: bytes) -> None:
    document = Document({"body": "rga", "title": "lww_register"})
    document.text("body").insert(0, "hello", ALICE)
    document.register("title").set("看板", document.stamp(ALICE))
    whole = render_checkpoint(
        Checkpoint("board", 3, frozenset({ALICE}), document), "2026-01-01T00:00:00.000Z", "alice"
    )
    assert parse_checkpoint(whole).document.values() == document.values()
    at = flip % len(whole)
    broken = [
        whole[: -1 - cut],
        whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :],
        noise,
        whole + noise + b"x",
    ]
    for data in broken:
        assert not is_checkpoint_of(data, "board")
        with pytest.raises(InvalidState):
            parse_checkpoint(data)
    assert not is_checkpoint_of(whole, "boar")
