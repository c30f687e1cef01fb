"""Module H: counters (FILES). H-5, on replicas without a workspace, stands in tests/crdt."""

from __future__ import annotations

import pytest
from calls import refused
from documents import count, create
from watchroom import Toolbox, Workspace
from watchroom.algorithms.crdt import PNCounter


@pytest.fixture(autouse=True)
def doc1(alice: Toolbox) -> None:
    create(alice, score="pn_counter")


def test_H_1_increment(alice: Toolbox) -> None:
    count(alice, "increment")
    assert count(alice, "increment", 3) == 4
    assert count(alice, "value") == 4


def test_H_2_decrement(alice: Toolbox) -> None:
    count(alice, "increment", 4)
    assert count(alice, "decrement", 2) == 2


def test_H_3_everybody_counts(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    count(alice, "increment", 5)
    count(bob, "increment", 3)
    assert count(workspace.tools("charlie"), "increment", 7) == 15
    assert count(alice, "value") == 15


@pytest.mark.parametrize("bob_is_first", [False, True])
def test_H_4_up_and_down_at_once(alice: Toolbox, bob: Toolbox, bob_is_first: bool) -> None:
    count(alice, "increment", 10)
    steps = [(alice, "increment", 5), (bob, "decrement", 3)]
    for toolbox, operation, amount in reversed(steps) if bob_is_first else steps:
        count(toolbox, operation, amount)
    assert count(bob, "value") == 12


def test_H_5_merging_keeps_each_share() -> None:
    a, b = PNCounter(), PNCounter()
    for counter, agent, amount in ((a, "alice", 10), (a, "bob", 5), (b, "alice", 3), (b, "charlie", 7)):
        counter.increment(amount, agent)
    a.merge(b.state())
    a.merge(b.state())
    assert a.value == 22
    assert a.shares() == {"alice": (10, 0), "bob": (5, 0), "charlie": (7, 0)}


@pytest.mark.parametrize("amount", [-1, 2**53, "many", 1.5, True, False])
def test_an_amount_that_cannot_be_is_refused(alice: Toolbox, amount: object) -> None:
    refused(
        alice,
        "realtime_edit_counter",
        doc_id="doc1",
        field_name="score",
        operation="increment",
        amount=amount,
    )
    assert count(alice, "value") == 0


def test_what_a_counter_cannot_take_is_no_damaged_state(alice: Toolbox, bob: Toolbox) -> None:
    most = 2**53 - 1
    assert count(alice, "increment", most) == most
    on = {"doc_id": "doc1", "field_name": "score"}
    result = refused(alice, "realtime_edit_counter", **on, operation="increment", amount=1)
    assert result["error"] == "counter_overflow"
    assert str(most) in result["message"]
    assert "Nothing was changed" in result["suggestion"]
    assert count(bob, "decrement", 1) == most - 1
    assert count(alice, "value") == most - 1
