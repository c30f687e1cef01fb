"""Module F: sets, where an addition wins over a removal that did not know of it (FILES)."""

from __future__ import annotations

import pytest
from calls import refused
from documents import create, tag
from watchroom import Toolbox


@pytest.fixture(autouse=True)
def doc1(alice: Toolbox) -> None:
    create(alice, tags="or_set")


def test_F_1_add(alice: Toolbox) -> None:
    tag(alice, "add", "important")
    tag(alice, "add", "urgent")
    listed = tag(alice, "list")
    assert (listed["elements"], listed["count"]) == (["important", "urgent"], 2)


def test_F_2_remove(alice: Toolbox) -> None:
    tag(alice, "add", "important")
    tag(alice, "add", "urgent")
    assert tag(alice, "remove", "important")["exists"] is False
    listed = tag(alice, "list")
    assert (listed["elements"], listed["count"]) == (["urgent"], 1)


def test_F_3_add_twice(alice: Toolbox) -> None:
    tag(alice, "add", "urgent")
    assert tag(alice, "add", "urgent")["count"] == 1
    assert tag(alice, "list")["elements"] == ["urgent"]


@pytest.mark.parametrize("bob_is_first", [False, True])
def test_F_4_an_addition_wins(alice: Toolbox, bob: Toolbox, bob_is_first: bool) -> None:
    tag(alice, "add", "important")
    tag(alice, "list")
    tag(bob, "list")
    if bob_is_first:
        tag(bob, "add", "important")
        assert "still in the set" in tag(alice, "remove", "important")["notice"]
    else:
        tag(alice, "remove", "important")
        tag(bob, "add", "important")
    assert tag(alice, "contains", "important")["exists"] is True
    assert tag(bob, "contains", "important")["exists"] is True


def test_F_4_what_was_seen_is_removed(alice: Toolbox, bob: Toolbox) -> None:
    tag(alice, "add", "important")
    tag(bob, "add", "important")
    tag(alice, "contains", "important")
    assert tag(alice, "remove", "important")["exists"] is False
    assert tag(bob, "list")["elements"] == []


def test_F_5_contains(alice: Toolbox) -> None:
    tag(alice, "add", "urgent")
    assert tag(alice, "contains", "urgent")["exists"] is True
    assert tag(alice, "contains", "low")["exists"] is False


@pytest.mark.parametrize("operation", ["add", "remove", "contains"])
def test_an_element_must_be_named(alice: Toolbox, operation: str) -> None:
    result = refused(alice, "realtime_edit_set", doc_id="doc1", field_name="tags", operation=operation)
    assert "element" in result["message"]
