"""A long item is wrapped below its line: as far as there is space, or always."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tui.driver import MIDDLE, NARROW, dashboard
from tui.sessions import asks, running
from tui.societies import needs_sandbox, runs, to_pane, to_tasks, works
from watchroom import Workspace
from watchroom_tui.formatters.columns import Column, share_width
from watchroom_tui.formatters.styled_text import Line, Span, width_of, wrap_cells
from watchroom_tui.widgets.item_layout import ItemRows, fit_heights

COLUMNS = (Column(least=4), Column(least=8, cut="middle", grows=True), Column(align="right"))
LONG = (
    "The parser reads digits, letters and signs, and says where it met what it does not know; nothing else."
)


def stacked(cell: Line, width: int, most: int) -> list[Line]:
    cells = ([Span("ada")], cell, [Span("3 s")])
    widths = share_width(COLUMNS, [width_of(each) for each in cells], width)
    return list(wrap_cells(COLUMNS, cells, widths, most))


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def test_a_text_goes_on_below_itself_in_its_own_style() -> None:
    first, second, third = stacked([Span("one two ", "dim"), Span("three four", "strong")], 16, 6)
    assert text_of(first) == "ada one two  3 s"
    assert [text_of(second).split(), text_of(third).split()] == [["three"], ["four"]]
    assert [span.style for line in (first, second) for span in line if span.text.strip()] == [
        "",
        "dim",
        "",
        "strong",
    ]


def test_what_takes_more_rows_than_it_may_is_cut_at_its_end() -> None:
    lines = stacked([Span(LONG)], 30, 3)
    assert len(lines) == 3
    assert text_of(lines[-1]).rstrip().endswith("…")


@given(
    words=st.lists(
        st.sampled_from(["a", "plan.md", "分析员", "é", "…", "and so on"]), min_size=1, max_size=30
    ),
    width=st.integers(18, 60),
)
def test_no_word_is_lost_and_no_line_is_wider_than_the_list(words: list[str], width: int) -> None:
    lines = stacked([Span(" ".join(words))], width, 1000)
    assert all(cell_len(text_of(line)) <= width for line in lines)
    assert text_of(lines[0]).startswith("ada")
    together = "".join(text_of(line).replace("ada ", "", 1).removesuffix("3 s") for line in lines)
    assert together.replace(" ", "") == "".join(words).replace(" ", "")


@given(heights=st.lists(st.integers(1, 6), max_size=40), more=st.integers(0, 9))
def test_each_row_belongs_to_one_item(heights: list[int], more: int) -> None:
    rows = ItemRows(len(heights) + more, heights)
    found = [rows.item_at(row) for row in range(rows.total)]
    assert found == [
        (index, part) for index, height in enumerate([*heights, *[1] * more]) for part in range(height)
    ]
    for index in range(len(heights) + more):
        assert [found[row][0] for row in rows.rows_of(index)] == [index] * rows.height_of(index)


@pytest.mark.parametrize(
    ("heights", "space", "given_rows"),
    [
        ([1, 3, 2], 6, [1, 3, 2]),
        ([1, 3, 2], 5, [1, 3, 1]),
        ([4, 3, 2], 5, [3, 1, 1]),
        ([4, 3, 2], 3, []),
        ([4, 3, 2], 2, []),
    ],
)
def test_what_is_left_goes_to_the_first_that_want_more(
    heights: list[int], space: int, given_rows: list[int]
) -> None:
    assert fit_heights(heights, len(heights), space) == given_rows


async def test_a_message_is_read_where_it_stands(workspace: Workspace, tmp_path: Path) -> None:
    works(workspace, tmp_path / "calculator")
    ok(workspace.tools("root"), "send_message", to="user", payload={"text": LONG})
    async with dashboard(workspace, size=MIDDLE) as user:
        await to_tasks(user)
        await user.until(lambda: LONG in user.words_in("#messages"), "the whole message")


async def test_the_cursor_goes_from_item_to_item_and_any_row_of_one_can_be_clicked(
    workspace: Workspace, tmp_path: Path
) -> None:
    works(workspace, tmp_path / "calculator")
    ok(workspace.tools("root"), "send_message", to="user", payload={"text": LONG})
    async with dashboard(workspace, size=MIDDLE) as user:
        await to_tasks(user)
        await to_pane(user, "messages")
        await user.sees("nothing else.")
        await user.press("g", "down")
        assert user.cursor("messages").row.message != LONG
        line = next(at for at, text in enumerate(user.lines()) if text.strip("│ ").endswith("nothing else."))
        await user.pilot.click(offset=(60, line))
        assert user.cursor("messages").row.message == LONG


async def test_the_end_of_a_long_last_item_is_scrolled_into_sight(
    workspace: Workspace, tmp_path: Path
) -> None:
    works(workspace, tmp_path / "calculator")
    for number in range(9):
        ok(workspace.tools("root"), "send_message", to="user", payload={"text": f"{number}. {LONG}"})
    async with dashboard(workspace, size=MIDDLE) as user:
        await to_tasks(user)
        await to_pane(user, "messages")
        await user.press("G")
        assert "It is written." in user.words_in("#messages")
        await user.press(*["up"] * 3)
        assert user.cursor("messages").row.message.startswith("0.")
        assert f"0. {LONG}" in user.words_in("#messages")
        await user.press("g")
        assert f"8. {LONG}" in user.words_in("#messages")


async def test_pages_go_past_items_that_are_as_high_as_the_list(workspace: Workspace, tmp_path: Path) -> None:
    works(workspace, tmp_path / "calculator")
    needs_sandbox(workspace)
    for number in range(4):
        runs(workspace, "root", f"# {number} {' '.join([LONG] * 9)}")
    async with dashboard(workspace, size=(120, 32)) as user:
        await to_tasks(user)
        await to_pane(user, "commands")
        await user.press("g")
        seen = [user.cursor("commands").begun.message[:3]]
        for _ in range(3):
            await user.press("pagedown")
            seen.append(user.cursor("commands").begun.message[:3])
        assert seen == ["# 3", "# 2", "# 1", "# 0"]


async def test_what_an_agent_asks_is_whole_on_the_overview(workspace: Workspace) -> None:
    async with (
        dashboard(workspace, size=NARROW) as user,
        running(workspace, "bob", asks(LONG)),
    ):
        await user.sees("question")
        await user.until(lambda: _has_words(user.words_in("#needs")), "the question among the needs")
        await user.until(lambda: _has_words(user.words_in("#agents")), "the question beside the agent")
        assert len(user.lines()) == 24
        assert "1 Over" in user.lines()[-1]


def _has_words(shown: str) -> bool:
    return all(word in shown for word in LONG.split())
