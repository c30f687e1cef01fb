"""Documents with authors: who wrote each part, and what is new since an earlier attribution."""

from __future__ import annotations

import pytest
from watchroom.algorithms.crdt import Document, HybridClock, Stamp
from watchroom.algorithms.crdt.history import (
    MAX_ATTRIBUTED,
    AttributedCounter,
    AttributedElement,
    AttributedFields,
    AttributedMap,
    AttributedRegister,
    AttributedSet,
    AttributedText,
    AttributedValue,
    CounterShare,
    attribute_document,
)
from watchroom.algorithms.crdt.text import TextRun

ALICE, BOB = "alice#a1", "bob#b0"


def document() -> Document:
    return Document(
        {
            "title": "lww_register",
            "body": "rga",
            "tags": "or_set",
            "settings": "lww_map",
            "votes": "pn_counter",
        },
        clock=HybridClock(lambda: 1000),
    )


def filled() -> Document:
    """Return a document in which Alice and Bob wrote to each field."""
    made = document()
    made.register("title").set("Plan", Stamp(1, 0, BOB))
    made.text("body").insert(0, "one", ALICE)
    made.text("body").insert(3, "two", BOB)
    made.set("tags").add("a", ALICE)
    made.set("tags").add("b", BOB)
    made.map("settings").set("theme", "dark", Stamp(2, 0, BOB))
    made.map("settings").set("lang", "zh", Stamp(3, 0, ALICE))
    made.map("settings").set("gone", 1, Stamp(4, 0, ALICE))
    made.map("settings").remove("gone", Stamp(5, 0, ALICE))
    made.counter("votes").increment(3, ALICE)
    made.counter("votes").decrement(1, BOB)
    return made


def test_an_empty_document_has_fields_and_no_authors() -> None:
    first: AttributedFields = {}
    for former in (None, first):
        assert attribute_document(document(), former) == {
            "title": AttributedRegister(None),
            "body": AttributedText("", (), {}),
            "tags": AttributedSet(()),
            "settings": AttributedMap({}),
            "votes": AttributedCounter(0, ()),
        }


def test_each_part_has_its_author_and_nothing_is_new_at_the_first_look() -> None:
    found = attribute_document(filled())
    assert [*found] == ["title", "body", "tags", "settings", "votes"]
    assert found == {
        "title": AttributedRegister(AttributedValue("Plan", "bob", 1)),
        "body": AttributedText("onetwo", (TextRun(3, "alice"), TextRun(3, "bob")), {ALICE: (3,), BOB: (3,)}),
        "tags": AttributedSet((AttributedElement("a", ("alice",)), AttributedElement("b", ("bob",)))),
        "settings": AttributedMap(
            {"lang": AttributedValue("zh", "alice", 3), "theme": AttributedValue("dark", "bob", 2)}
        ),
        "votes": AttributedCounter(2, (CounterShare("alice", 3, 0), CounterShare("bob", 0, 1))),
    }
    settings = found["settings"]
    assert isinstance(settings, AttributedMap)
    assert [*settings.entries] == ["lang", "theme"]


def test_nothing_is_new_where_nothing_changed_and_what_was_new_is_so_no_more() -> None:
    made = filled()
    first = attribute_document(made)
    assert attribute_document(made, first) == first
    made.register("title").set("Plan 2", Stamp(9, 0, ALICE))
    made.map("settings").set("theme", "light", Stamp(9, 0, ALICE))
    made.set("tags").add("c", ALICE)
    made.counter("votes").increment(1, ALICE)
    second = attribute_document(made, first)
    assert second != attribute_document(made)
    assert attribute_document(made, second) == attribute_document(made)


def test_what_came_since_the_earlier_look_is_new_and_what_went_is_named() -> None:
    made = filled()
    former = attribute_document(made)
    made.register("title").set("Plan", Stamp(9, 0, BOB))
    made.text("body").insert(6, "!", BOB)
    made.set("tags").add("a", BOB)
    made.set("tags").remove("b")
    made.map("settings").set("new", None, Stamp(9, 0, BOB))
    made.map("settings").remove("theme", Stamp(9, 0, BOB))
    made.counter("votes").decrement(2, BOB)
    assert attribute_document(made, former) == {
        # Writing the same value again is a new write.
        "title": AttributedRegister(AttributedValue("Plan", "bob", 9, is_new=True)),
        "body": AttributedText(
            "onetwo!",
            (TextRun(3, "alice"), TextRun(3, "bob"), TextRun(1, "bob", is_new=True)),
            {ALICE: (3,), BOB: (4,)},
        ),
        "tags": AttributedSet((AttributedElement("a", ("bob",), is_new=True),), removed=("b",)),
        "settings": AttributedMap(
            {
                "lang": AttributedValue("zh", "alice", 3),
                "new": AttributedValue(None, "bob", 9, is_new=True),
            },
            removed=("theme",),
        ),
        "votes": AttributedCounter(0, (CounterShare("alice", 3, 0), CounterShare("bob", 0, 3, is_new=True))),
    }


def test_all_is_new_that_came_to_an_empty_document_and_nothing_in_a_field_that_was_not_there() -> None:
    since_empty = attribute_document(filled(), attribute_document(document()))
    title, tags = since_empty["title"], since_empty["tags"]
    assert isinstance(title, AttributedRegister)
    assert isinstance(tags, AttributedSet)
    assert title.written == AttributedValue("Plan", "bob", 1, is_new=True)
    assert [each.is_new for each in tags.elements] == [True, True]
    others: AttributedFields = {
        "title": AttributedSet((AttributedElement("x", ()),)),
        "tags": AttributedRegister(None),
    }
    assert attribute_document(filled(), others) == attribute_document(filled())


@pytest.mark.parametrize(("length", "is_told"), [(MAX_ATTRIBUTED, True), (MAX_ATTRIBUTED + 1, False)])
def test_the_authors_of_a_text_beyond_200_000_characters_are_not_told(length: int, is_told: bool) -> None:
    made = Document({"body": "rga"})
    made.text("body").insert(0, "x" * length, ALICE)
    body = attribute_document(made)["body"]
    assert isinstance(body, AttributedText)
    assert (len(body.text), body.runs) == (length, (TextRun(length, "alice"),) if is_told else ())
    assert body.version_vector == {ALICE: (length,)}
