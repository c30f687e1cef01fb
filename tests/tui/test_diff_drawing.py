"""Comparisons as rows, for any texts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from watchroom.algorithms.merge import diff_lines, split_lines
from watchroom_tui.formatters.diff_drawing import CONTEXT, DiffDrawing, DiffInput
from watchroom_tui.formatters.drawing import Cell
from watchroom_tui.formatters.styled_text import Line, width_of
from watchroom_tui.presentation.sanitize import sanitize

lines = st.sampled_from(
    ["", "a", "b", "the cat sat", "the dog sat", "港口 吞吐", "d\r", "e\u2028f", "\x1b[1m"]
)
texts = st.lists(lines, max_size=30).map("\n".join)
REACH = 80


def comparison(old: str, new: str, *, side_by_side: bool) -> DiffDrawing:
    compared = DiffInput(split_lines(old), split_lines(new), diff_lines(old, new))
    return DiffDrawing(compared, side_by_side=side_by_side)


def rows(drawing: DiffDrawing) -> list[list[Cell]]:
    return [list(drawing.row(index, REACH, is_top=False)) for index in range(len(drawing))]


def said(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(drawing: DiffDrawing, under: str) -> list[str]:
    """Return the texts of the lines of a kind, without the mark for a missing line end."""
    cells = [cell for row in rows(drawing) for cell in row if cell.under == under]
    return [said([span for span in cell.text if span.text != " ⌁"]) for cell in cells]


def wanted(text: str, spans: list[tuple[int, int]]) -> list[str]:
    found = split_lines(text)
    return [sanitize(found[place].removesuffix("\n")) for start, end in spans for place in range(start, end)]


@given(texts, texts, st.booleans())
@example("a\r\n", "a\n", False)
@example("a", "a\n", True)
def test_every_line_that_changed_stands_in_it_once_and_no_other(old: str, new: str, sides: bool) -> None:
    drawing = comparison(old, new, side_by_side=sides)
    changed = diff_lines(old, new)
    assert shown(drawing, "removed-line") == wanted(old, [(each.old_start, each.old_end) for each in changed])
    assert shown(drawing, "added-line") == wanted(new, [(each.new_start, each.new_end) for each in changed])


@given(texts, texts)
def test_lines_that_did_not_change_stand_side_by_side_with_themselves(old: str, new: str) -> None:
    for row in rows(comparison(old, new, side_by_side=True)):
        if len(row) == 2 and "" in (row[0].under, row[1].under):
            assert (row[0].text, row[0].under) == (row[1].text, row[1].under)


@given(texts, texts, st.booleans())
def test_all_gutters_are_as_wide_as_the_drawing_says(old: str, new: str, sides: bool) -> None:
    drawing = comparison(old, new, side_by_side=sides)
    for index, row in enumerate(rows(drawing)):
        assert len(row) == (1 if row[0].under == "header-line" else drawing.columns)
        for cell in row:
            assert width_of(cell.gutter) == drawing.gutter(index)


@given(texts, texts, st.booleans())
def test_what_is_measured_is_what_is_drawn(old: str, new: str, sides: bool) -> None:
    drawing = comparison(old, new, side_by_side=sides)
    for index, row in enumerate(rows(drawing)):
        assert [said(cell.text) for cell in row] == list(drawing.cell_texts(index))


@given(texts)
def test_texts_that_are_the_same_have_no_rows(text: str) -> None:
    assert len(comparison(text, text, side_by_side=False)) == 0


def test_lines_around_a_change_are_shown_and_those_far_away_are_not() -> None:
    old = [f"line {number}\n" for number in range(100)]
    new = [*old[:20], "other\n", *old[21:25], "other too\n", *old[26:90], *old[91:]]
    drawing = comparison("".join(old), "".join(new), side_by_side=False)
    headers = [said(row[0].text) for row in rows(drawing) if row[0].under == "header-line"]
    assert headers == [" @@ −18,12 +18,12 @@", " @@ −88,7 +88,6 @@"]
    assert shown(drawing, "")[:CONTEXT] == ["line 17", "line 18", "line 19"]


def words(old: str, new: str) -> list[list[tuple[str, str]]]:
    return [
        [(span.text, span.style) for span in cell.text if span.style.endswith("-word")]
        for row in rows(comparison(old, new, side_by_side=True))
        for cell in row
        if cell.under.endswith("ed-line")
    ]


def test_the_words_that_differ_are_marked_on_both_sides() -> None:
    assert words("Sales rose a bit.\n", "Sales rose by 12 %.\n") == [
        [("a", "removed-word"), ("bit", "removed-word")],
        [("by", "added-word"), ("12 %", "added-word")],
    ]


def test_a_line_that_is_new_altogether_has_no_words_marked() -> None:
    assert words("Sales rose.\n", "港口吞吐量增长了。\n") == [[], []]


@pytest.mark.parametrize("sides", [False, True])
def test_a_missing_end_is_marked(sides: bool) -> None:
    drawing = comparison("a\n", "a", side_by_side=sides)
    ends = [said(cell.text) for row in rows(drawing) for cell in row if cell.under == "added-line"]
    assert ends == ["a ⌁"]


def test_of_a_line_of_megabytes_only_what_can_be_seen_is_drawn() -> None:
    drawing = comparison("x" * 5_000_000, "y" + "x" * 5_000_000, side_by_side=True)
    assert max(width_of(cell.text) for row in rows(drawing) for cell in row) <= 4 * REACH + 2
