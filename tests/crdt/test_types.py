"""Each data type on separate replicas: the cases of FILES that need two replicas and no workspace."""

from __future__ import annotations

from itertools import permutations

import pytest
from watchroom.algorithms.crdt import (
    Document,
    HybridClock,
    LWWMap,
    LWWRegister,
    ORSet,
    PNCounter,
    Stamp,
    Text,
)
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState, NotText, TooLarge, WrongFieldType

ALICE, BOB = "alice#a1", "bob#b0"


def test_D_3_equal_times_are_decided_by_the_larger_agent_id() -> None:
    alice, bob = LWWRegister(), LWWRegister()
    of_alice = alice.set("Alice", Stamp(1, 0, ALICE))
    of_bob = bob.set("Bob", Stamp(1, 0, BOB))
    alice.merge(of_bob)
    bob.merge(of_alice)
    assert alice.state() == bob.state()
    assert alice.value == "Bob"


def test_D_3_an_agent_whose_id_starts_with_anothers_is_the_larger() -> None:
    short, long = LWWRegister(), LWWRegister()
    short.set("short", Stamp(1, 0, "al#ffff"))
    long.set("long", Stamp(1, 0, "al-b#1"))
    short.merge(long.state())
    assert short.value == "long"


def test_E_5_concurrent_insertions_at_different_places_both_stay() -> None:
    alice = Text()
    start = alice.insert(0, "AC", ALICE).delta
    bob = Text()
    bob.merge(start)
    b = alice.insert(1, "B", ALICE).delta
    d = bob.insert(2, "D", BOB).delta
    alice.merge(d)
    bob.merge(b)
    assert alice.value == bob.value == "ABCD"


def test_E_6_concurrent_insertions_at_one_place_come_in_the_same_order_everywhere() -> None:
    alice = Text()
    start = alice.insert(0, "AC", ALICE).delta
    bob = alice.copy()
    deltas = [start, alice.insert(1, "X", ALICE).delta, bob.insert(1, "Y", BOB).delta]
    found = set()
    for order in permutations(deltas):
        third = Text()
        for delta in order:
            third.merge(delta)
        found.add(third.value)
    assert len(found) == 1
    assert found <= {"AXYC", "AYXC"}


def test_E_7_positions_beyond_the_text_are_clamped() -> None:
    text = Text()
    text.insert(0, "Hi", ALICE)
    edit = text.insert(999, "!", ALICE)
    assert (text.value, edit.position) == ("Hi!", 2)
    assert text.insert(-5, "> ", ALICE).position == 0
    assert text.delete(3, 999, ALICE).deleted == 2
    assert text.value == "> H"


def test_F_3_an_element_added_twice_is_in_the_set_once() -> None:
    tags = ORSet()
    tags.add("urgent", ALICE)
    tags.add("urgent", BOB)
    assert tags.value == ["urgent"]
    assert tags.added_by("urgent") == ("bob",)


def test_F_4_an_addition_wins_over_a_removal_that_did_not_know_of_it() -> None:
    alice, bob = ORSet(), ORSet()
    bob.merge(alice.add("important", ALICE))
    removal = alice.remove("important")
    addition = bob.add("important", BOB)
    alice.merge(addition)
    bob.merge(removal)
    assert "important" in alice
    assert alice.state() == bob.state()


def test_F_4_a_removal_takes_only_what_its_writer_had_seen() -> None:
    tags = ORSet()
    tags.add("important", ALICE)
    seen = tags.copy()
    tags.add("important", BOB)
    tags.remove("important", seen)
    assert "important" in tags


def test_a_removal_leaves_no_tombstone() -> None:
    tags = ORSet()
    for each in range(100):
        tags.add(f"tag {each}", ALICE)
        tags.remove(f"tag {each}")
    assert tags.state() == {"elements": {}, "context": {ALICE: 100}, "cloud": []}


def test_an_addition_whose_predecessor_has_not_come_counts_in_the_version_vector() -> None:
    alice, bob = ORSet(), ORSet()
    alice.add("first", ALICE)
    bob.merge(alice.add("second", ALICE))
    assert bob.version_vector() == alice.version_vector() == {ALICE: (2,)}


def test_F_4_who_saw_an_empty_set_removes_nothing() -> None:
    tags = ORSet()
    seen = tags.copy()
    tags.add("important", BOB)
    tags.remove("important", seen)
    assert "important" in tags


@pytest.mark.parametrize("word", ["two", "2"])
@pytest.mark.parametrize(("writer", "other"), [(ALICE, BOB), (BOB, ALICE)])
def test_E_what_replaces_a_word_stands_where_the_word_stood(writer: str, other: str, word: str) -> None:
    text = Text()
    text.insert(0, f"one {word} three", "start#1")
    twin = text.copy()
    deltas = [text.replace(4, 4 + len(word), "ZWEI", writer).delta, twin.insert(4, "(x) ", other).delta]
    for each in (text, twin):
        for delta in deltas:
            each.merge(delta)
    assert text.value == twin.value == "one (x) ZWEI three"


def test_G_2_writes_to_different_keys_both_stay() -> None:
    alice = LWWMap()
    alice.replace({"theme": "dark", "lang": "zh"}, Stamp(1, 0, ALICE))
    bob = alice.copy()
    light = alice.replace({"theme": "light", "lang": "zh"}, Stamp(2, 0, ALICE))
    english = bob.replace({"theme": "dark", "lang": "en"}, Stamp(2, 0, BOB))
    alice.merge(english)
    bob.merge(light)
    assert alice.value == bob.value == {"theme": "light", "lang": "en"}


def test_G_a_removed_key_does_not_come_back_with_an_older_write() -> None:
    settings = LWWMap()
    old = LWWMap().set("theme", "dark", Stamp(1, 0, BOB))
    settings.remove("theme", Stamp(2, 0, ALICE))
    settings.merge(old)
    assert settings.value == {}


def test_H_5_merging_keeps_the_larger_count_of_each_replica() -> None:
    a, b = PNCounter(), PNCounter()
    a.increment(10, "alice")
    a.increment(5, "bob")
    b.increment(3, "alice")
    b.increment(7, "charlie")
    a.merge(b.state())
    assert a.value == 22
    assert a.shares() == {"alice": (10, 0), "bob": (5, 0), "charlie": (7, 0)}
    a.merge(b.state())
    assert a.value == 22


def test_one_agent_may_count_at_two_replicas_at_once() -> None:
    one, other = PNCounter(), PNCounter()
    one.merge(other.increment(2, "alice#1"))
    one.increment(3, "alice#2")
    assert one.shares() == {"alice": (5, 0)}


def test_stamps_grow_even_when_the_wall_clock_goes_back() -> None:
    times = iter([1000, 900, 900, 2000])
    clock = HybridClock(lambda: next(times))
    first = clock.stamp(ALICE)
    clock.observe(Stamp(1500, 7, BOB))
    stamps = [first, clock.stamp(ALICE), clock.stamp(ALICE), clock.stamp(ALICE)]
    assert stamps == sorted(stamps)
    assert [(stamp.time, stamp.tick) for stamp in stamps] == [(1000, 0), (1500, 8), (1500, 9), (2000, 0)]


def test_a_text_tells_who_wrote_which_characters() -> None:
    text = Text()
    text.insert(0, "Hello world", ALICE)
    text.replace(6, 11, "你好🙂", BOB)
    assert [(run.length, run.agent) for run in text.runs()] == [(6, "alice"), (3, "bob")]


@pytest.mark.parametrize("liar_is_first", [False, True])
def test_two_names_for_one_writer_come_out_the_same_everywhere(liar_is_first: bool) -> None:
    honest = Text().insert(0, "x", "bob#b0").delta
    assert honest
    deltas = [honest, {**honest, "by": "alice#b0"}]
    text = Text()
    for delta in reversed(deltas) if liar_is_first else deltas:
        text.merge(delta)
    assert [run.agent for run in text.runs()] == ["bob"]


def test_a_paste_of_a_megabyte_is_one_edit() -> None:
    text, other = Text(), Text()
    other.merge(text.insert(0, "áé🙂\n" * 300_000, ALICE).delta)
    assert other.value == text.value


@pytest.mark.parametrize(
    ("bad", "error"), [("\ud800", NotText), ("a\0b", NotText), ("x" * (10 * 1024 * 1024 + 1), TooLarge)]
)
def test_what_is_no_text_is_refused_and_nothing_changes(bad: str, error: type[Exception]) -> None:
    text, tags, title = Text(), ORSet(), LWWRegister()
    for write in (
        lambda: text.insert(0, bad, ALICE),
        lambda: tags.add(bad, ALICE),
        lambda: title.set(bad, Stamp(1, 0, ALICE)),
    ):
        with pytest.raises(error):
            write()
    assert (text.value, tags.value, title.value) == ("", [], None)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"deep": [float("nan")]}, {1: "one", "1": 2}, b"x"]
)
def test_a_value_that_is_no_json_is_refused(value: object) -> None:
    title = LWWRegister()
    with pytest.raises(NotText):
        title.set(value, Stamp(1, 0, ALICE))  # type: ignore[arg-type]


def test_of_a_name_that_is_too_long_a_part_is_told() -> None:
    with pytest.raises(InvalidSchema) as refused:
        Document({"a" * 101: "rga"})
    assert refused.value.values["field"] == "a" * 100


def test_fields_are_found_by_name_and_type() -> None:
    board = Document({"title": "lww_register"})
    with pytest.raises(FieldNotFound, match="title"):
        board.register("color")
    with pytest.raises(WrongFieldType, match="not rga"):
        board.text("title")


def test_a_document_comes_back_from_its_state() -> None:
    board = Document(
        {
            "title": "lww_register",
            "body": "rga",
            "tags": "or_set",
            "settings": "lww_map",
            "views": "pn_counter",
        }
    )
    board.register("title").set("看板", board.stamp(ALICE))
    board.text("body").insert(0, "描述", ALICE)
    board.set("tags").add("a", ALICE)
    board.map("settings").set("theme", {"dark": [True, None, 1.5]}, board.stamp(ALICE))
    board.counter("views").increment(5, BOB)
    again = Document.from_state(board.state())
    assert again.values() == board.values()
    assert again.state() == board.state()
    again.text("body").insert(2, "!", BOB)
    board.merge(again.state()["fields"])
    assert board.values() == again.values()


def test_what_comes_before_what_it_builds_on_waits_even_over_a_restart() -> None:
    text, late = Text(), Text()
    first = text.insert(0, "one ", ALICE).delta
    second = text.insert(4, "two", ALICE).delta
    late.merge(second)
    assert late.value == ""
    back = Text.packed(late.state(), late.value)
    back.merge(first)
    assert back.value == "one two"


def test_a_refusal_names_the_field_and_the_rule() -> None:
    board = Document({"views": "pn_counter"})
    with pytest.raises(InvalidState, match=r"'views'.*not an integer"):
        board.merge({"views": {"plus": {"mallory": -5}}})
