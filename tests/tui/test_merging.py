"""A merge in hand: where the person is, what a choice does, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge.triples import triple
from watchroom.merge import CHOICES, Choice, join_regions, merge, rebase_regions
from watchroom_tui.merge_state import Layout, MergeState, below, beside, count_taken

BASE = "a\nb\nc\nd\ne\nf\ng\n"
CURRENT = "a\nB\nc\nD current\ne\nF current\ng\n"
INCOMING = "a\nb\nc\nD incoming\ne\nF incoming\ng\n"


@pytest.fixture
def merging() -> MergeState:
    """One change of the current side alone, then two conflicts."""
    return MergeState(merge(BASE, CURRENT, INCOMING))


def test_a_merge_begins_at_its_first_conflict(merging: MergeState) -> None:
    assert merging.regions[merging.at].current == ("D current\n",)
    assert len(merging.open) == 2


def test_what_was_taken_is_counted_from_each_side(merging: MergeState) -> None:
    assert count_taken(merging.regions) == {"current": 1}
    merging.take("both_incoming_first")
    merging.take("incoming")
    assert count_taken(merging.regions) == {"current": 1, "both": 1, "incoming": 1}
    assert (merging.conflicts, merging.overwritten_by("incoming")) == (2, 1)


def test_a_choice_leads_to_the_next_conflict_and_the_last_one_stays(merging: MergeState) -> None:
    first, second = merging.open
    merging.take("current")
    assert merging.at == second
    merging.take("incoming")
    assert merging.at == second != first
    assert join_regions(merging.regions) == CURRENT.replace("F current", "F incoming")


def test_a_choice_for_the_last_conflict_leads_back_to_one_that_was_left_out(merging: MergeState) -> None:
    first, _ = merging.open
    merging.step(1)
    merging.take("current")
    assert merging.at == first


def test_what_one_side_changed_alone_can_be_chosen_otherwise(merging: MergeState) -> None:
    merging.step(-1)
    merging.take("incoming")
    merging.take_everywhere("current")
    assert join_regions(merging.regions) == CURRENT.replace("B", "b")


def test_steps_go_round_and_over_everything_that_differs(merging: MergeState) -> None:
    places = [merging.at]
    for _ in range(3):
        merging.step(1)
        places.append(merging.at)
    assert places[0] == places[3]
    assert sorted(set(places)) == merging.stops


def test_a_step_is_undone_and_done_again(merging: MergeState) -> None:
    begun = merging.regions
    merging.take("current")
    once = merging.regions
    merging.take("incoming")
    twice = merging.regions
    assert merging.undo()
    assert merging.regions == once
    assert merging.undo()
    assert merging.regions == begun
    assert not merging.undo()
    assert merging.redo()
    assert merging.redo()
    assert merging.regions == twice
    assert not merging.redo()


def test_what_was_undone_is_gone_after_another_choice(merging: MergeState) -> None:
    merging.take("current")
    merging.undo()
    merging.take("incoming")
    assert not merging.redo()


def test_choices_and_undo_outlive_a_newer_version(merging: MergeState) -> None:
    merging.take("current")
    newer = CURRENT.replace("g\n", "g\nnew\n")
    renewed = merging.renewed(lambda regions: rebase_regions(regions, newer))
    assert len(renewed.open) == 1
    assert renewed.regions[renewed.at].is_open
    renewed.take("incoming")
    assert join_regions(renewed.regions) == newer.replace("F current", "F incoming")
    assert renewed.undo()
    assert renewed.undo()
    assert len(renewed.open) == 2


@given(
    st.integers(0, 2**32), st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(CHOICES[:-1])), max_size=8)
)
def test_undoing_everything_gives_the_regions_of_the_beginning(
    seed: int, acts: list[tuple[int, Choice]]
) -> None:
    merging = MergeState(merge(*triple(seed)))
    begun = merging.regions
    for steps, choice in acts:
        merging.step(steps)
        merging.take(choice)
        assert not merging.stops or merging.at in merging.stops
    while merging.undo():
        pass
    assert merging.regions == begun


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_the_regions_around_the_person_hold_that_region_and_change_no_text(seed: int, lines: int) -> None:
    merging = MergeState(merge(*triple(seed)))
    before = [joined_side(merging, side) for side in ("base", "current", "incoming")]
    start, end = merging.around(lines)
    assert [joined_side(merging, side) for side in ("base", "current", "incoming")] == before
    if merging.regions:
        assert start <= merging.at < end <= len(merging.regions)
        others = [each for index, each in enumerate(merging.regions[start:end], start) if index != merging.at]
        assert sum(max(len(each.current), len(each.incoming)) for each in others) <= lines


def test_long_unchanged_text_beside_a_conflict_is_cut_for_the_editor() -> None:
    long = "".join(f"{number}\n" for number in range(1000))
    merging = MergeState(merge(long + "x\n" + long, long + "y\n" + long, long + "z\n" + long))
    start, end = merging.around(40)
    window = merging.regions[start:end]
    assert [len(each.base) for each in window] == [10, 1, 10]
    assert merging.regions[merging.at].is_open


def joined_side(merging: MergeState, side: str) -> str:
    return "".join(line for region in merging.regions for line in getattr(region, side))


@given(st.integers(0, 2**32))
def test_every_row_of_a_layout_belongs_to_one_region(seed: int) -> None:
    regions = merge(*triple(seed))
    for layout in (beside(regions), below(regions)):
        rows = [layout.at(row) for row in range(layout.rows)]
        assert rows == [(index, row) for index in range(len(regions)) for row in range(layout.height(index))]


def test_an_empty_region_has_a_row() -> None:
    layout = Layout([2, 0, 1])
    assert layout.rows == 4
    assert layout.at(2) == (1, 0)
