"""The state of a merge: the current region, choices, and undo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge.triples import triple
from watchroom.algorithms.merge import CHOICES, Choice, join_regions, merge, rebase_regions
from watchroom_tui.screens.merge.state import (
    MergeState,
    RegionLayout,
    count_choices,
    result_layout,
    side_by_side_layout,
)

BASE = "a\nb\nc\nd\ne\nf\ng\n"
CURRENT = "a\nB\nc\nD current\ne\nF current\ng\n"
INCOMING = "a\nb\nc\nD incoming\ne\nF incoming\ng\n"


@pytest.fixture
def state() -> MergeState:
    """One change of the current side alone, then two conflicts."""
    return MergeState(merge(BASE, CURRENT, INCOMING))


def test_a_merge_begins_at_its_first_conflict(state: MergeState) -> None:
    assert state.regions[state.at].current == ("D current\n",)
    assert len(state.open) == 2


def test_taken_regions_are_counted_by_side(state: MergeState) -> None:
    assert count_choices(state.regions) == {"current": 1}
    state.take("both_incoming_first")
    state.take("incoming")
    assert count_choices(state.regions) == {"current": 1, "both": 1, "incoming": 1}
    assert (state.conflicts, state.count_overwritten("incoming")) == (2, 1)


def test_a_choice_leads_to_the_next_conflict_and_the_last_one_stays(state: MergeState) -> None:
    first, second = state.open
    state.take("current")
    assert state.at == second
    state.take("incoming")
    assert state.at == second != first
    assert join_regions(state.regions) == CURRENT.replace("F current", "F incoming")


def test_a_choice_for_the_last_conflict_leads_back_to_one_that_was_left_out(state: MergeState) -> None:
    first, _ = state.open
    state.step(1)
    state.take("current")
    assert state.at == first


def test_changes_of_one_side_can_be_declined(state: MergeState) -> None:
    state.step(-1)
    state.take("incoming")
    state.choose_everywhere("current")
    assert join_regions(state.regions) == CURRENT.replace("B", "b")


def test_steps_go_round_and_over_everything_that_differs(state: MergeState) -> None:
    places = [state.at]
    for _ in range(3):
        state.step(1)
        places.append(state.at)
    assert places[0] == places[3]
    assert sorted(set(places)) == state.stops


def test_a_step_is_undone_and_done_again(state: MergeState) -> None:
    begun = state.regions
    state.take("current")
    once = state.regions
    state.take("incoming")
    twice = state.regions
    assert state.undo()
    assert state.regions == once
    assert state.undo()
    assert state.regions == begun
    assert not state.undo()
    assert state.redo()
    assert state.redo()
    assert state.regions == twice
    assert not state.redo()


def test_another_choice_drops_the_undone_ones(state: MergeState) -> None:
    state.take("current")
    state.undo()
    state.take("incoming")
    assert not state.redo()


def test_choices_and_undo_outlive_a_newer_version(state: MergeState) -> None:
    state.take("current")
    newer = CURRENT.replace("g\n", "g\nnew\n")
    with_changed_regions = state.with_changed_regions(lambda regions: rebase_regions(regions, newer))
    assert len(with_changed_regions.open) == 1
    assert with_changed_regions.regions[with_changed_regions.at].is_open
    with_changed_regions.take("incoming")
    assert join_regions(with_changed_regions.regions) == newer.replace("F current", "F incoming")
    assert with_changed_regions.undo()
    assert with_changed_regions.undo()
    assert len(with_changed_regions.open) == 2


@given(
    st.integers(0, 2**32), st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(CHOICES[:-1])), max_size=8)
)
def test_undoing_everything_gives_the_regions_of_the_beginning(
    seed: int, acts: list[tuple[int, Choice]]
) -> None:
    state = MergeState(merge(*triple(seed)))
    begun = state.regions
    for steps, choice in acts:
        state.step(steps)
        state.take(choice)
        assert not state.stops or state.at in state.stops
    while state.undo():
        pass
    assert state.regions == begun


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_the_regions_around_the_person_hold_that_region_and_change_no_text(seed: int, lines: int) -> None:
    state = MergeState(merge(*triple(seed)))
    before = [joined_side(state, side) for side in ("base", "current", "incoming")]
    start, end = state.window(lines)
    assert [joined_side(state, side) for side in ("base", "current", "incoming")] == before
    if state.regions:
        assert start <= state.at < end <= len(state.regions)
        others = [each for index, each in enumerate(state.regions[start:end], start) if index != state.at]
        assert sum(max(len(each.current), len(each.incoming)) for each in others) <= lines


def test_long_unchanged_text_beside_a_conflict_is_cut_for_the_editor() -> None:
    long = "".join(f"{number}\n" for number in range(1000))
    state = MergeState(merge(long + "x\n" + long, long + "y\n" + long, long + "z\n" + long))
    start, end = state.window(40)
    window = state.regions[start:end]
    assert [len(each.base) for each in window] == [10, 1, 10]
    assert state.regions[state.at].is_open
    before = state.regions
    state.window(40)
    assert state.regions is before, "there is nothing left to cut, so nothing is drawn anew"


def joined_side(state: MergeState, side: str) -> str:
    return "".join(line for region in state.regions for line in getattr(region, side))


@given(st.integers(0, 2**32))
def test_every_row_of_a_layout_belongs_to_one_region(seed: int) -> None:
    regions = merge(*triple(seed))
    for layout in (side_by_side_layout(regions), result_layout(regions)):
        rows = [layout.at(row) for row in range(layout.rows)]
        assert rows == [(index, row) for index in range(len(regions)) for row in range(layout.height(index))]


def test_an_empty_region_has_a_row() -> None:
    layout = RegionLayout([2, 0, 1])
    assert layout.rows == 4
    assert layout.at(2) == (1, 0)
