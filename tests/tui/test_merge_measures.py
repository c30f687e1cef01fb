"""The scroll range of a merge's panes, for any decisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from merge.triples import triple
from watchroom.algorithms.merge import CHOICES, Choice, Region, merge
from watchroom_tui.screens.merge.measures import RegionMeasures
from watchroom_tui.screens.merge.state import MergeState, RegionLayout


def rows(layout: RegionLayout) -> list[tuple[int, int]]:
    return [layout.at(row) for row in range(layout.rows)]


@given(st.integers(0, 2**32), st.lists(st.sampled_from([*CHOICES, None]), max_size=8))
def test_incremental_measures_equal_the_measures_of_the_new_regions(
    seed: int, choices: list[Choice | None]
) -> None:
    state, measures = MergeState(merge(*triple(seed))), RegionMeasures()
    for choice in (None, *choices):
        if choice is None:
            state.undo()
        else:
            state.take(choice)
        measures.measure(state.regions)
        anew = RegionMeasures()
        anew.measure(state.regions)
        assert rows(measures.sides) == rows(anew.sides)
        assert rows(measures.result) == rows(anew.result)
        assert (measures.widest_change, measures.longest) == (anew.widest_change, anew.longest)


def test_a_text_written_by_hand_is_measured_too() -> None:
    measures = RegionMeasures()
    conflict = Region("conflict", ("a\n",), ("b\n",), ("c\n",))
    measures.measure((conflict,))
    sides = measures.sides
    measures.measure((conflict._replace(choice="edited", text=("as I say 港\n", "and more\n")),))
    assert (measures.longest, measures.result.rows) == (11, 2)
    assert measures.sides is sides
    measures.measure((conflict._replace(incoming=("c\n", "d\n")),))
    assert measures.sides.rows == 2
