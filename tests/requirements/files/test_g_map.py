"""Module G: maps, where the last write of each key wins (FILES)."""

from __future__ import annotations

import pytest
from calls import ok, refused
from documents import create, get, put
from watchroom import Toolbox


@pytest.fixture(autouse=True)
def doc1(alice: Toolbox) -> None:
    create(alice, config="lww_map")
    put(alice, "config", {"theme": "dark", "lang": "zh"})


def test_G_1_set_and_read(alice: Toolbox) -> None:
    assert get(alice, "config") == {"theme": "dark", "lang": "zh"}


def test_G_2_changes_of_different_keys_both_stay(alice: Toolbox, bob: Toolbox) -> None:
    assert get(alice, "config") == get(bob, "config")
    put(alice, "config", {"theme": "light", "lang": "zh"})
    put(bob, "config", {"theme": "dark", "lang": "en"})
    assert get(alice, "config") == get(bob, "config") == {"theme": "light", "lang": "en"}


def test_one_key_is_set_and_removed(alice: Toolbox, bob: Toolbox) -> None:
    where = {"doc_id": "doc1", "field_name": "config"}
    ok(bob, "realtime_set_field", **where, key="size", value=None)
    ok(alice, "realtime_set_field", **where, key="lang", remove=True)
    assert get(alice, "config") == {"theme": "dark", "size": None}


def test_replacing_the_whole_removes_what_was_seen_and_left_out(alice: Toolbox, bob: Toolbox) -> None:
    get(bob, "config")
    ok(alice, "realtime_set_field", doc_id="doc1", field_name="config", key="new", value=1)
    put(bob, "config", {"theme": "dark"})
    assert get(bob, "config") == {"theme": "dark", "new": 1}


def test_who_never_looked_removes_nothing_by_replacing_the_whole(alice: Toolbox, bob: Toolbox) -> None:
    put(bob, "config", {"lang": "en"})
    assert get(alice, "config") == {"theme": "dark", "lang": "en"}
    put(bob, "config", {})
    assert get(alice, "config") == {"theme": "dark"}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"key": "theme"}, {"value": "no object"}, {"value": [1]}, {"remove": True}, {"value": 1, "key": ""}],
)
def test_what_a_map_cannot_take_is_refused(alice: Toolbox, arguments: dict[str, object]) -> None:
    refused(alice, "realtime_set_field", doc_id="doc1", field_name="config", **arguments)
    assert get(alice, "config") == {"theme": "dark", "lang": "zh"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"value": {"": 1}}, "it does not have 1 to 1000 characters"),
        ({"value": {"k" * 1001: 1}}, "it does not have 1 to 1000 characters"),
        ({"value": {"a\0": 1}}, "it contains NUL characters"),
        ({"value": 1, "key": "a\0"}, "it contains NUL characters"),
        ({"remove": True, "key": "a\0"}, "it contains NUL characters"),
    ],
)
def test_a_key_that_cannot_be_is_no_damaged_state(alice: Toolbox, given: dict[str, object], why: str) -> None:
    before = get(alice, "config")
    result = refused(alice, "realtime_set_field", doc_id="doc1", field_name="config", **given)
    assert result["error"] == "invalid_key"
    assert why in result["message"]
    assert get(alice, "config") == before


def test_a_map_that_has_grown_too_large_is_not_read_whole(alice: Toolbox) -> None:
    create(alice, "large", meta="lww_map")
    for key in ("a", "b"):
        value = "x" * (6 * 1024 * 1024)
        ok(alice, "realtime_set_field", doc_id="large", field_name="meta", key=key, value=value)
    asked = refused(alice, "realtime_get_field", doc_id="large", field_name="meta")
    whole = refused(alice, "realtime_get_document_snapshot", doc_id="large")
    assert (asked["error"], whole["error"]) == ("too_large", "too_large")
