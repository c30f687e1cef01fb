"""Updates of a text that came before what they build on."""

from __future__ import annotations

from watchroom.crdt import Text

ALICE = "alice#a1"


def test_what_waits_is_in_a_copy_too() -> None:
    text, late = Text(), Text()
    first = text.insert(0, "one ", ALICE).delta
    late.merge(text.insert(4, "two", ALICE).delta)
    twin = late.copy()
    twin.merge(first)
    assert twin.value == "one two"
    assert late.value == ""
