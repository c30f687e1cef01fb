"""At the limits of counters and clocks, writes are refused and the document stays valid."""

from __future__ import annotations

import pytest
from replicating import restarted
from watchroom import Json
from watchroom.algorithms.crdt import Document, FieldType, HybridClock, Text
from watchroom.errors import CounterOverflow, InvalidState, TooLarge
from watchroom.model import MAX_TEXT_BYTES

ALICE, MALLORY = "alice#a1", "mallory#66"
MOST = 2**53 - 1


def document(kind: FieldType, told: Json) -> Document:
    """Return a document with one field, after a merge of a delta."""
    made = Document({"field": kind}, clock=HybridClock(lambda: 1000))
    made.merge({"field": told})
    return made


def test_after_the_last_tick_comes_the_next_millisecond() -> None:
    title = document("lww_register", {"value": "theirs", "stamp": [2000, MOST, MALLORY]})
    title.register("field").set("ours", title.stamp(ALICE))
    assert restarted(title).values() == {"field": "ours"}


def test_after_the_last_millisecond_comes_nothing() -> None:
    title = document("lww_register", {"value": "theirs", "stamp": [MOST, MOST, MALLORY]})
    for _ in range(2):
        with pytest.raises(InvalidState):
            title.stamp(ALICE)
    assert restarted(title).values() == {"field": "theirs"}


def test_beyond_the_last_addition_of_a_replica_nothing_is_added() -> None:
    tags = document("or_set", {"elements": {"theirs": {ALICE: MOST}}, "context": {ALICE: MOST}})
    with pytest.raises(InvalidState):
        tags.set("field").add("ours", ALICE)
    tags.set("field").add("ours", "alice#a2")
    assert restarted(tags).values() == {"field": ["ours", "theirs"]}


def test_beyond_the_last_number_nothing_is_counted() -> None:
    votes = document("pn_counter", {"plus": {ALICE: MOST}})
    with pytest.raises(CounterOverflow):
        votes.counter("field").increment(1, ALICE)
    votes.counter("field").increment(1, "alice#a2")
    assert restarted(votes).values() == {"field": MOST + 1}


def test_a_text_may_be_replaced_as_long_as_the_new_one_is_not_too_long() -> None:
    half = "好" * (MAX_TEXT_BYTES // 3 - 10)
    text = Text()
    text.insert(0, half, ALICE)
    assert text.replace(0, len(text), half[::-1], ALICE).deleted == len(half)
    assert text.replace(0, 10, "x" * 30, ALICE).inserted == 30
    before = text.version_vector()
    with pytest.raises(TooLarge):
        text.replace(0, 10, "x" * 42, ALICE)
    assert text.version_vector() == before


def test_only_a_history_from_elsewhere_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Document({"body": "rga"})
    for _ in range(20):
        ours.text("body").replace(0, 1000, "好" * 1000, ALICE)
    monkeypatch.setattr("watchroom.algorithms.crdt.text._MAX_HISTORY", 1000)
    again = restarted(ours)
    again.text("body").insert(0, "still ", ALICE)
    assert again.values() == {"body": "still " + "好" * 1000}
    with pytest.raises(InvalidState):
        Document({"body": "rga"}).merge(ours.state()["fields"])
