"""What comes from a broken or wicked replica is refused in words and changes nothing, or it is taken over."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Final

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from replicating import ALL, Edit, evidence, fields, new_document, perform, restarted
from watchroom import Json
from watchroom.algorithms.crdt import Document, FieldType
from watchroom.algorithms.crdt.checkpoint import (
    Checkpoint,
    is_checkpoint_of,
    parse_checkpoint,
    render_checkpoint,
)
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState, NotText

Schema = Mapping[str, FieldType]
ALICE, BOB, CAROL, DAVE = "alice#a1", "bob#b2", "carol#c3", "dave#d4"
EDITS: Final = {
    "title": Edit("title", "set", ("看板",)),
    "body": Edit("body", "insert", (3, "two 🙂")),
    "tags": Edit("tags", "add", ("urgent",)),
    "settings": Edit("settings", "set", ("theme", {"dark": [True, None]})),
    "votes": Edit("votes", "increment", (3,)),
}


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


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_name_that_cannot_be_stored_is_quoted_as_it_can() -> None:
    with pytest.raises(FieldNotFound, match=r"\\ud800") as unknown:
        filled(ALL, ALICE).merge({"\ud800": {}})
    with pytest.raises(InvalidSchema, match=r"\\ud800") as invalid:
        Document({"\ud800": "rga"})
    assert all(str(each.value).encode() for each in (unknown, invalid))


def test_the_escape_of_a_nul_is_text_where_a_backslash_is_meant() -> None:
    document = Document({"title": "lww_register"})
    for text in ("\\u0000", "\\\\\\u0000"):
        document.register("title").set(text, document.stamp(ALICE))
        assert document.register("title").value == text
    for text in ("\0", "\\\0", "\\\\\0"):
        with pytest.raises(NotText):
            document.register("title").set(text, document.stamp(ALICE))


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


@settings(max_examples=rounds(100, 200))
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
