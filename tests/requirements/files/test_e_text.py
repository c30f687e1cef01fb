"""Module E: texts that several write at once (FILES)."""

from __future__ import annotations

import pytest
from calls import ok, refused
from documents import create, edit, get
from watchroom import Toolbox


@pytest.fixture(autouse=True)
def doc1(alice: Toolbox) -> None:
    create(alice, body="rga")


def test_E_1_insert_into_an_empty_text(alice: Toolbox) -> None:
    assert edit(alice, "insert", position=0, text="Hello")["length"] == 5
    assert get(alice, "body") == "Hello"


def test_E_2_insert_into_a_text(alice: Toolbox) -> None:
    edit(alice, "insert", position=0, text="Hello")
    assert edit(alice, "insert", position=5, text=" World")["length"] == 11
    assert get(alice, "body") == "Hello World"


def test_E_3_delete_a_range(alice: Toolbox) -> None:
    edit(alice, "insert", position=0, text="Hello World")
    deleted = edit(alice, "delete", **{"from": 5, "to": 11})
    assert (deleted["deleted_count"], deleted["length"]) == (6, 5)
    assert get(alice, "body") == "Hello"


def test_E_4_replace(alice: Toolbox) -> None:
    edit(alice, "insert", position=0, text="Hello")
    assert edit(alice, "replace", **{"from": 0, "to": 5, "text": "Hi"})["length"] == 2
    assert get(alice, "body") == "Hi"


@pytest.mark.parametrize("bob_is_first", [False, True])
def test_E_5_insert_at_different_places_at_once(alice: Toolbox, bob: Toolbox, bob_is_first: bool) -> None:
    edit(alice, "insert", position=0, text="AC")
    assert get(bob, "body") == "AC"
    edits = [(alice, 1, "B"), (bob, 2, "D")]
    for toolbox, position, text in reversed(edits) if bob_is_first else edits:
        edit(toolbox, "insert", position=position, text=text)
    assert get(alice, "body") == get(bob, "body") == "ABCD"


def test_E_6_insert_at_one_place_at_once(alice: Toolbox, bob: Toolbox) -> None:
    edit(alice, "insert", position=0, text="AC")
    get(bob, "body")
    edit(alice, "insert", position=1, text="X")
    late = edit(bob, "insert", position=1, text="Y")
    assert "Others have edited" in late["notice"]
    assert get(alice, "body") == get(bob, "body")
    assert get(alice, "body") in ("AXYC", "AYXC")


def test_E_7_a_position_beyond_the_text_is_clamped(alice: Toolbox) -> None:
    edit(alice, "insert", position=0, text="Hi")
    assert edit(alice, "insert", position=999, text="!")["position"] == 2
    assert get(alice, "body") == "Hi!"


def test_positions_count_in_the_text_as_its_reader_knows_it(alice: Toolbox, bob: Toolbox) -> None:
    edit(alice, "insert", position=0, text="one two")
    get(bob, "body")
    edit(alice, "insert", position=0, text="zero ")
    edit(bob, "insert", position=3, text=",")
    edit(bob, "delete", **{"from": 5, "to": 6})
    edit(bob, "insert", position=5, text="T")
    assert get(alice, "body") == "zero one, Two"
    assert "notice" not in edit(alice, "insert", position=13, text=".")
    assert get(bob, "body") == "zero one, Two."


def test_an_edit_that_changes_nothing_makes_no_version(alice: Toolbox) -> None:
    before = edit(alice, "insert", position=0, text="x")["version"]
    assert edit(alice, "delete", **{"from": 1, "to": 1})["version"] == before
    assert edit(alice, "insert", position=0, text="")["version"] == before


@pytest.mark.parametrize(
    ("operation", "args", "missing"),
    [
        ("insert", {"text": "x"}, "position"),
        ("insert", {"position": 0}, "text"),
        ("delete", {"from": 0}, "to"),
        ("replace", {"from": 0, "to": 1}, "text"),
    ],
)
def test_a_missing_argument_is_named(
    alice: Toolbox, operation: str, args: dict[str, object], missing: str
) -> None:
    result = refused(
        alice, "realtime_edit_text", doc_id="doc1", field_name="body", operation=operation, args=args
    )
    assert f"args.{missing}" in result["message"]


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
def test_what_is_no_text_is_refused(alice: Toolbox, text: str) -> None:
    args = {"position": 0, "text": text}
    refused(alice, "realtime_edit_text", doc_id="doc1", field_name="body", operation="insert", args=args)
    assert get(alice, "body") == ""


def test_a_text_grows_to_10_mb_and_not_beyond(alice: Toolbox) -> None:
    most = 10 * 1024 * 1024
    edit(alice, "insert", position=0, text="x" * (most - 1))
    args = {"position": 0, "text": "é"}
    result = refused(
        alice, "realtime_edit_text", doc_id="doc1", field_name="body", operation="insert", args=args
    )
    assert result["error"] == "too_large"
    assert ok(alice, "realtime_get_field", doc_id="doc1", field_name="body")["length"] == most - 1
