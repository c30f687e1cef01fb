"""Updates of a text that arrive before their dependencies."""

from __future__ import annotations

import pytest
from watchroom import Json
from watchroom.algorithms.crdt import Document, Text
from watchroom.errors import InvalidState

ALICE = "alice#a1"


def test_what_waits_is_in_a_copy_too() -> None:
    text, late = Text(), Text()
    first = text.insert(0, "one ", ALICE).delta
    late.merge(text.insert(4, "two", ALICE).delta)
    twin = late.copy()
    twin.merge(first)
    assert twin.value == "one two"
    assert late.value == ""


def test_a_state_with_broken_updates_that_wait_is_refused_whole() -> None:
    text = Text()
    text.insert(0, "one", ALICE)
    here = Text()
    here.insert(0, "here", "bob#b2")
    before = here.state(), here.version_vector()
    with pytest.raises(InvalidState):
        here.merge({**text.state(), "waiting": "AA=="})
    assert (here.state(), here.version_vector()) == before
    here.merge(text.state())
    assert sorted(here.value) == sorted("onehere")


def test_a_state_is_merged_after_the_deltas_before_it() -> None:
    text, forged = Text(), Text()
    delta = text.insert(0, "one", ALICE).delta
    forged.insert(0, "two", ALICE)
    apart, at_once = Document({"body": "rga"}), Document({"body": "rga"})
    deltas: list[Json] = [{"body": delta}, {"body": forged.state()}]
    for each in deltas:
        apart.merge(each)
    at_once.merge_all(deltas)
    assert apart.values() == at_once.values() == {"body": "one"}
