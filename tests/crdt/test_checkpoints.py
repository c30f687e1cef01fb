"""Document checkpoints: they restore the document, and other files are refused."""

from __future__ import annotations

import hashlib
import json

import pytest
from watchroom.algorithms.crdt import Document, HybridClock
from watchroom.algorithms.crdt.checkpoint import (
    HEADER_BYTES,
    Checkpoint,
    is_checkpoint_of,
    is_valid_checkpoint,
    parse_checkpoint,
    parse_version,
    render_checkpoint,
)
from watchroom.errors import InvalidState

ALICE = "alice#a1"


@pytest.fixture
def data() -> bytes:
    document = Document({"title": "lww_register", "body": "rga"}, clock=HybridClock(lambda: 1000))
    document.register("title").set("看板", document.stamp(ALICE))
    document.text("body").insert(0, "描述", ALICE)
    checkpoint = Checkpoint("doc1", 12, frozenset({ALICE, "bob#b0"}), document)
    return render_checkpoint(checkpoint, "2026-01-01T00:00:00.000Z", "alice")


def signed(body: str) -> bytes:
    """Return a file with ``body`` and a correct checksum."""
    text = body.encode()
    return b'{\n"checksum": "' + hashlib.sha256(text).hexdigest().encode() + b'",\n' + text


def changed(data: bytes, **fields: object) -> bytes:
    """Return the checkpoint with changed fields, and without the fields given as ``...``."""
    found = {key: value for key, value in {**json.loads(data), **fields}.items() if value is not ...}
    del found["checksum"]
    return signed(json.dumps(found)[1:])


def test_a_checkpoint_comes_back_as_it_was_and_can_be_read(data: bytes) -> None:
    found = parse_checkpoint(data)
    assert (found.name, found.version, found.replicas) == ("doc1", 12, frozenset({ALICE, "bob#b0"}))
    assert found.document.values() == {"title": "看板", "body": "描述"}
    assert render_checkpoint(found, "2026-01-01T00:00:00.000Z", "alice") == data
    assert "看板" in data.decode()
    told = json.loads(data)
    assert (told["updated"], told["by"]) == ("2026-01-01T00:00:00.000Z", "alice")
    assert (told["replicas"], told["values"]) == ([ALICE, "bob#b0"], {"title": "看板", "body": "描述"})
    assert parse_version(data[:HEADER_BYTES]) == 12
    assert parse_checkpoint(changed(data)).document.values() == found.document.values()


@pytest.mark.parametrize(
    "fields",
    [
        {"document": ...},
        {"document": 1},
        {"version": -1},
        {"version": "12"},
        {"version": 2**53},
        {"replicas": {}},
        {"replicas": [""]},
        {"replicas": [1]},
        {"more": 1},
        {"schema": {}},
        {"schema": {"title": "none"}},
        {"schema": {"title": "lww_register"}},
        {"values": {"title": "x"}},
        {"values": []},
        {"fields": []},
        {"fields": {"title": {}}},
        {"fields": {"title": 5, "body": {}}},
    ],
    ids=str,
)
def test_what_is_no_checkpoint_is_refused_though_its_checksum_is_right(
    data: bytes, fields: dict[str, object]
) -> None:
    bad = changed(data, **fields)
    assert is_valid_checkpoint(bad)
    with pytest.raises(InvalidState) as refused:
        parse_checkpoint(bad)
    assert refused.value.values["rule"] == "state_checkpoint"


@pytest.mark.parametrize("body", ["", '"a": 1', '"a": ' + "[" * 100_000, '"a": "\ud83d"}', "}"])
def test_what_is_no_json_is_refused_though_its_checksum_is_right(body: str) -> None:
    bad = signed(body.encode("utf-8", "replace").decode())
    assert is_valid_checkpoint(bad)
    with pytest.raises(InvalidState) as refused:
        parse_checkpoint(bad)
    assert refused.value.values["rule"] == "state_checkpoint"


def test_every_changed_byte_is_noticed(data: bytes) -> None:
    for at in (0, 1, 2, 15, 80, len(data) // 2, len(data) - 1):
        bad = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert not is_valid_checkpoint(bad)
        assert not is_checkpoint_of(bad, "doc1")
        with pytest.raises(InvalidState):
            parse_checkpoint(bad)
    assert not is_valid_checkpoint(data + b" ")
    assert not is_valid_checkpoint(b" " + data)


@pytest.mark.parametrize(
    ("name", "is_it"), [("doc1", True), ("doc", False), ("doc12", False), ("alice", False)]
)
def test_a_checkpoint_is_that_of_its_document(data: bytes, name: str, is_it: bool) -> None:
    assert is_checkpoint_of(data, name) is is_it


@pytest.mark.parametrize(
    ("start", "version"),
    [
        (b'{\n"version": 7,\n', 7),
        (b'"version": 999999999999999,\n', 999999999999999),
        (b'"version": 1000000000000000,\n', 0),
        (b'"version": -7,\n', 0),
        (b'"version": 7', 0),
        (b' "version": 7,\n', 0),
        (b"", 0),
    ],
)
def test_the_version_stands_in_a_line_of_its_own(start: bytes, version: int) -> None:
    assert parse_version(start) == version
