"""Module D: registers, where the last write wins (FILES). D-3 also stands in tests/crdt."""

from __future__ import annotations

import pytest
from calls import ok
from documents import create, get, put
from watchroom import Toolbox
from watchroom.algorithms.crdt import LWWRegister, Stamp


@pytest.fixture(autouse=True)
def doc1(alice: Toolbox) -> None:
    create(alice, title="lww_register")


def test_D_1_set_and_read(alice: Toolbox) -> None:
    put(alice, "title", "第一版标题")
    assert get(alice, "title") == "第一版标题"


def test_D_1_a_register_that_was_never_written_is_null(alice: Toolbox) -> None:
    assert get(alice, "title") is None


def test_D_2_the_later_write_wins(alice: Toolbox, bob: Toolbox) -> None:
    put(alice, "title", "Alice的标题")
    put(bob, "title", "Bob的标题")
    read = ok(alice, "realtime_get_field", doc_id="doc1", field_name="title")
    assert (read["value"], read["author"]) == ("Bob的标题", "bob")


@pytest.mark.parametrize("order", [("alice", "bob"), ("bob", "alice")])
def test_D_3_equal_times_are_decided_by_agent_id(order: tuple[str, str]) -> None:
    merged = LWWRegister()
    for agent in order:
        merged.merge(LWWRegister().set(agent, Stamp(7, 0, agent)))
    assert merged.value == "bob"


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "x", [1, [None]], {"a": {"b": []}}])
def test_D_a_register_holds_any_json(alice: Toolbox, value: object) -> None:
    put(alice, "title", value)
    assert get(alice, "title") == value
