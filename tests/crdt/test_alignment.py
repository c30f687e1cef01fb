"""Translation of edits of a known text to positions in the current text."""

from __future__ import annotations

from itertools import count

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.algorithms.crdt.alignment import Placement, TextAlignment, TextStep


class Reader:
    """A slow model of the alignment: every character is unique."""

    def __init__(self, length: int) -> None:
        self._new = count()
        self.known = [next(self._new) for _ in range(length)]
        self.present = list(self.known)
        self.alignment = TextAlignment(length)

    def others_edit(self, position: int, deleted: int, inserted: int) -> None:
        position = min(position, len(self.present))
        deleted = min(deleted, len(self.present) - position)
        self.present[position : position + deleted] = self._fresh(inserted)
        self.alignment.apply(TextStep(position, deleted, inserted))

    def edit(self, start: int, deleted: int, inserted: int) -> None:
        start = min(start, len(self.known))
        stop = min(start + deleted, len(self.known))
        place = self.alignment.place(start, stop)
        before = list(self.known)
        gone = set(self.known[start:stop])
        assert [self.present[at + each] for at, many in place.spans for each in range(many)] == [
            character for character in self.present if character in gone
        ]
        fresh = self._fresh(inserted)
        for at, many in reversed(place.spans):
            del self.present[at : at + many]
        self.present[place.position : place.position] = fresh
        self.known[start:stop] = fresh
        self.alignment.record_edit(start, stop, inserted)
        self._stays_between(before[:start], fresh, before[stop:])

    def _stays_between(self, left: list[int], written: list[int], right: list[int]) -> None:
        """New text comes after all text that the writer knew to be before it, and before all text after
        it."""
        places = {character: place for place, character in enumerate(self.present)}
        ends = [[places[each] for each in part if each in places] for part in (left, written, right)]
        assert [place for part in ends for place in part] == sorted(place for part in ends for place in part)

    def _fresh(self, many: int) -> list[int]:
        return [next(self._new) for _ in range(many)]


numbers = st.integers(0, 12)
edits = st.lists(st.tuples(st.booleans(), numbers, st.integers(0, 5), st.integers(0, 4)), max_size=25)


@settings(max_examples=rounds(300, 3000))
@given(length=st.integers(0, 8), steps=edits)
def test_an_edit_changes_what_its_writer_knew_and_nothing_else(
    length: int, steps: list[tuple[bool, int, int, int]]
) -> None:
    reader = Reader(length)
    for is_own, position, deleted, inserted in steps:
        (reader.edit if is_own else reader.others_edit)(position, deleted, inserted)
        assert reader.alignment.known_length == len(reader.known)
        assert reader.alignment.present_length == len(reader.present)
    assert reader.alignment.is_behind == any(not is_own for is_own, *_ in steps)


@settings(max_examples=rounds(200, 2000))
@given(length=st.integers(0, 8), own=edits, steps=st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
def test_steps_taken_in_together_come_out_as_one_by_one(
    length: int, own: list[tuple[bool, int, int, int]], steps: list[tuple[int, int, int]]
) -> None:
    one, other = Reader(length), Reader(length)
    for reader in (one, other):
        for is_own, *edit in own:
            (reader.edit if is_own else reader.others_edit)(*edit)
    told = list[TextStep]()
    for step in steps:
        before = len(one.present)
        position = min(step[0], before)
        deleted = min(step[1], before - position)
        one.others_edit(position, deleted, step[2])
        told.append(TextStep(position, deleted, step[2]))
    other.alignment.apply_all(told)
    known = one.alignment.known_length
    assert (other.alignment.known_length, other.alignment.present_length) == (known, len(one.present))
    for start in range(known + 1):
        for stop in range(start, known + 1):
            assert other.alignment.place(start, stop) == one.alignment.place(start, stop)


def test_what_is_inserted_stays_with_the_character_before_it() -> None:
    alignment = TextAlignment(4)
    alignment.apply(TextStep(2, 0, 3))
    assert alignment.place(2, 2) == Placement(2, [])
    assert alignment.place(3, 3) == Placement(6, [])


def test_at_the_end_of_the_text_it_comes_after_what_others_wrote_there() -> None:
    alignment = TextAlignment(4)
    alignment.apply(TextStep(4, 0, 3))
    assert alignment.place(4, 4) == Placement(7, [])
    alignment.record_edit(4, 4, 2)
    alignment.apply(TextStep(9, 0, 5))
    # The writer's own text is continued and stays in one piece.
    assert alignment.place(6, 6) == Placement(9, [])
    assert TextAlignment(0).place(0, 0) == Placement(0, [])


def test_what_others_wrote_within_what_is_deleted_stays() -> None:
    alignment = TextAlignment(10)
    alignment.apply(TextStep(5, 0, 2))
    alignment.apply(TextStep(2, 1, 0))
    assert alignment.place(1, 8) == Placement(1, [(1, 3), (6, 3)])
    alignment.record_edit(1, 8, 4)
    assert (alignment.known_length, alignment.present_length) == (7, 9)
    assert alignment.place(5, 6) == Placement(7, [(7, 1)])


@pytest.mark.parametrize("position", [1, 2, 3], ids=["before", "within", "behind"])
def test_an_edit_made_without_what_others_wrote_is_where_it_was_merged(position: int) -> None:
    alignment = TextAlignment(4)
    # Others had changed "abcd" to "axyd" before "!" was inserted after "b".
    alignment.apply(TextStep(1, 2, 2))
    alignment.record_merged_edit(2, 2, [TextStep(position, 0, 1)])
    assert (alignment.known_length, alignment.present_length) == (5, 5)
    assert alignment.place(2, 3) == Placement(position, [(position, 1)])
    assert alignment.place(1, 2).spans == alignment.place(3, 4).spans == []
    assert alignment.place(4, 5).spans == [(4, 1)]


def test_what_an_edit_deleted_that_others_had_deleted_is_known_no_more() -> None:
    alignment = TextAlignment(4)
    alignment.apply(TextStep(1, 1, 0))
    alignment.record_merged_edit(0, 3, [TextStep(0, 2, 1)])
    assert (alignment.known_length, alignment.present_length) == (2, 2)
    assert alignment.place(0, 2).spans == [(0, 2)]
