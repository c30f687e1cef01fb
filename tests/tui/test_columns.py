"""Columns share the width of a list by the lengths of their texts."""

from __future__ import annotations

import pytest
from calls import ok
from rich.cells import cell_len
from tui.driver import dashboard
from tui.team import deliver, write
from watchroom import Toolbox, Workspace
from watchroom_tui.formatters.columns import Column, fit_path, share_width, wrap
from watchroom_tui.formatters.styled_text import Span, align_cells, wrap_cells, wrapped

COLUMNS = (Column(least=6, cut="middle", grows=True), Column(align="right"), Column(least=4, most=10))


def drawn(width: int, path: str, number: str, name: str) -> str:
    cells = ([Span(path)], [Span(number)], [Span(name)])
    needs = [cell_len(each) for each in (path, number, name)]
    line = align_cells(COLUMNS, cells, share_width(COLUMNS, needs, width))
    return "".join(span.text for span in line)


def test_remaining_cells_go_to_the_growing_column() -> None:
    assert drawn(20, "plan.md", "v2", "ed") == "plan.md        v2 ed"


def test_an_empty_column_takes_no_space() -> None:
    assert drawn(10, "plan.md", "", "ed") == "plan.md ed"


def test_the_widest_column_gives_way_first() -> None:
    assert drawn(20, "calculator/evaluate.py", "v12", "analyst") == "cal…e.py v12 analyst"


@pytest.mark.parametrize(
    ("width", "line"),
    [(17, "plan.md v2 writer"), (20, "plan.md    v2 writer"), (16, "plan.md       v2"), (9, "plan.… v2")],
)
def test_an_optional_column_is_left_out_before_another_text_is_cut(width: int, line: str) -> None:
    columns = (Column(least=6, grows=True), Column(), Column(least=4, optional=True))
    cells = ([Span("plan.md")], [Span("v2")], [Span("writer")])
    drawn_line = align_cells(columns, cells, share_width(columns, (7, 2, 6), width))
    assert "".join(span.text for span in drawn_line) == line


def test_names_that_differ_are_not_cut_to_the_same() -> None:
    paths = ("calculator/tests/test_display.py", "calculator/display.py", "calculator/tests/test_evaluate.py")
    assert [fit_path(each, 20) for each in paths] == [
        "cal…/test_display.py",
        "calculat…/display.py",
        "ca…/test_evaluate.py",
    ]


def test_a_path_is_shortened_at_its_folders() -> None:
    path = "calculator/tests/units/test_display.py"
    assert fit_path(path, 34).rstrip() == "calculator/tests/…/test_display.py"
    assert fit_path(path, 33).rstrip() == "calculator/…/test_display.py"
    assert fit_path(path, 27).rstrip() == "calculator…/test_display.py"
    assert fit_path(path, 17).rstrip() == "…/test_display.py"
    assert len(fit_path(path, 12)) == 12


@pytest.mark.parametrize("path", ["计划计划计划计划.md", "e\u0301\u200d" * 12, "👩‍👩‍👧‍👦" * 6])
@pytest.mark.parametrize("width", range(3, 30))
def test_a_line_of_wide_characters_is_never_wider_than_the_list(path: str, width: int) -> None:
    line = drawn(width, path, "v2", "分析员分析员分析员")
    assert cell_len(line) <= max(width, 12)


@pytest.mark.parametrize(
    ("text", "width", "pieces"),
    [
        ("Build a calculator for all", 13, ["Build a ", "calculator ", "for all"]),
        ("say calculator", 12, ["say ", "calculator"]),
        ("realtime_create_document", 12, ["realtime_", "create_", "document"]),
        ("calculator/tests/test_display.py", 24, ["calculator/tests/test_", "display.py"]),
        ("x abcdefghijklmnopqr", 12, ["x abcdefghij", "klmnopqr"]),
        ("一二三四五六", 5, ["一二", "三四", "五六"]),
        ("结束 root？没有它任务会被取消。", 12, ["结束 root？", "没有它任务会", "被取消。"]),
        ("一二三四。五六", 8, ["一二三", "四。五六"]),
        ("abcdefghijklmnopqrstuvwxyz", 8, ["abcdefgh", "ijklmnop", "qrstuvwx", "yz"]),
        ("一二三（四）", 8, ["一二三", "（四）"]),
        ("前往 calculator 文件", 10, ["前往 ", "calculator", " 文件"]),
    ],
)
def test_lines_break_between_words(text: str, width: int, pieces: list[str]) -> None:
    assert wrap(text, width) == pieces


def test_a_word_at_the_end_of_a_started_line_goes_to_the_next() -> None:
    lines = wrapped([Span("  "), Span("question "), Span("calculator")], 16)
    assert ["".join(span.text for span in line) for line in lines] == ["  question ", "  calculator"]


def test_a_path_is_shortened_and_a_sentence_wrapped() -> None:
    column = Column(cut="middle", grows=True)
    (line,) = wrap_cells([column], [[Span(" "), Span("calculator/tests/test_display.py")]], [24], 6)
    assert "".join(span.text for span in line) == " calcul…/test_display.py"
    assert len(wrap_cells([column], [[Span("Build a calculator for all")]], [13], 6)) == 3


async def test_names_are_whole_while_there_is_space_beside_them(workspace: Workspace, alice: Toolbox) -> None:
    for name in ("calculate.py", "evaluate.py"):
        write(alice, "1\n", 0, f"calculator/{name}")
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.sees("calculator/calculate.py", "calculator/evaluate.py")


async def test_a_filtered_list_is_as_wide_as_what_it_shows(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "1\n", 0, "a.py")
    write(alice, "1\n", 0, "calculator/expressions/evaluate.py")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.sees("evaluate.py")
        wide = next(line for line in user.lines() if "a.py" in line)
        await user.press("slash", *"a.py", "enter")
        await user.sees_no("evaluate.py")
        narrow = next(line for line in user.lines() if "a.py" in line and "write" in line)
        assert narrow.index("v1") < wide.index("v1")


async def test_removed_items_need_no_width(workspace: Workspace, alice: Toolbox) -> None:
    long = "the-figures-of-the-last-quarter.md"
    deliver(alice, "bob", long, "gone soon")
    deliver(alice, "bob", "a.md", "stays")
    async with dashboard(workspace) as user:
        await user.goes_to("3", "handoffs")
        await user.sees(f"about {long}")
        column = user.lines()[2].index("waiting")
        ok(workspace.tools("bob"), "acknowledge_handoff", from_agent="alice", filename=long)
        await user.has_taken_in(workspace)
        await user.press("z")
        await user.sees_no(long)
        assert user.lines()[2].index("waiting") < column
