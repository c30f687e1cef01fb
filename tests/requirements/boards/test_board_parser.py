"""What a board says (BOARDS-3.1, BOARDS-7.1): found in either language, reported where it is malformed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from requirements.boards.written import Written, boards
from watchroom_whiteboards.board_parser import parse_board
from watchroom_whiteboards.items import (
    BoardDecision,
    BoardItems,
    BoardLogEntry,
    BoardMilestone,
    BoardNegotiation,
    BoardRisk,
    BoardTask,
    BoardUpdate,
)
from watchroom_whiteboards.vocabulary import HEADINGS, is_same_heading, section_kind_of

CHINESE = """\
# 全局白板 - 支付

## 关键决策记录
### 决策 #12
- **时间**: 2026-03-01T09:00:00+08:00
- **提议者**: ada
- **内容**: 采用 `SQLite`，*不再*讨论
- **签字方**: ada、bob
- **状态**: 申诉中

## 里程碑
- [ ] 设计完成
- [x] 接口冻结 (已完成)

## 问题与风险
- 进度落后

## 更新日志
- [2026-03-01T10:00:00Z] bob: 开始

### 更新 - 2026-03-01T11:00:00.250Z
**操作者**: pm

写完了**测试**。
"""
ENGLISH = """\
# Bottom layer - tester

## Current tasks
### Task #T-1
- **Description**: test the import
- **Status**: In Progress
- **PROGRESS**: 40%
- **blockers**: none

## Decisions and negotiations
### Negotiation #3
- **Time**: 2026-03-01T09:00:00Z
- **Parties**: ada, bob
- **Topic**: who tests
- **Conclusion**: bob does

## Execution log
- [2026-03-01T09:30:00Z] started: the suite
  and went on
"""
NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_a_chinese_board_is_understood() -> None:
    said = parse_board(CHINESE)
    assert said == BoardItems(
        decisions=(
            BoardDecision(
                4,
                "12",
                datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=8))),
                "ada",
                "采用 SQLite，不再讨论",
                ("ada", "bob"),
                "appealed",
            ),
        ),
        milestones=(BoardMilestone(12, "设计完成", False), BoardMilestone(13, "接口冻结 (已完成)", True)),
        risks=(BoardRisk(16, "进度落后"),),
        log=(BoardLogEntry(19, NINE.replace(hour=10), "bob", "开始"),),
        updates=(BoardUpdate(21, NINE.replace(hour=11, microsecond=250_000), "pm", "写完了**测试**。"),),
    )


def test_fields_whose_colon_is_within_the_bold_are_understood() -> None:
    board = "## 当前任务\n### 任务 #1\n- **描述：**清理数据\n- **状态:**进行中\n- **进度：**60%\n"
    assert parse_board(board).tasks == (BoardTask(2, "1", "清理数据", "in_progress", 60, ""),)


def test_a_byte_order_mark_hides_no_heading() -> None:
    board = "## Milestones\n- [x] one\n"
    assert parse_board(f"\ufeff{board}") == parse_board(board)
    assert parse_board(board).milestones


def test_an_english_board_is_understood() -> None:
    assert parse_board(ENGLISH) == BoardItems(
        tasks=(BoardTask(4, "T-1", "test the import", "in_progress", 40, ""),),
        negotiations=(BoardNegotiation(11, "3", NINE, ("ada", "bob"), "who tests", "bob does"),),
        log=(BoardLogEntry(18, NINE.replace(minute=30), "", "started: the suite\nand went on"),),
    )


def test_languages_may_be_mixed_within_an_entry() -> None:
    board = (
        "## Key Decisions\n### 决策 #1\n- **Time**: 2026-03-01T09:00:00Z\n- **提议者**：ada\n- **CONTENT:** go\n"
        "- Signed by: none\n- **状态**: Approved\n"
    )
    assert parse_board(board) == BoardItems(
        decisions=(BoardDecision(2, "1", NINE, "ada", "go", (), "approved"),)
    )


def test_a_title_may_follow_the_id_of_an_entry_and_text_its_fields() -> None:
    board = (
        "## 当前任务\n### 任务 #7：迁移\n- **描述**: a\n  - b\n\n  c\n- **状态**: 已完成\n- **进度**: 100\n"
        "#### Notes\nProgress: slow\n- and **Weather**: fine\n"
    )
    assert parse_board(board) == BoardItems(tasks=(BoardTask(2, "7", "a\nb\nc", "done", 100, ""),))


def test_an_important_decision_may_stand_in_a_quote() -> None:
    fields = "".join(f"> - **{name}**: {value}\n" for name, value in DECISION.items())
    said = parse_board(f"## 关键决策\n### 决策＃1\n> It is decided:\n>\n{fields}")
    assert said == BoardItems(decisions=(BoardDecision(2, "1", NINE, "ada", "go", ("ada",), "approved"),))


def test_headings_and_lists_within_code_quotes_and_html_say_nothing() -> None:
    board = (
        "```\n## Milestones\n- [ ] code\n```\n> ## Milestones\n> - [ ] quoted\n\n<pre>\n## Milestones\n- [ ] raw\n</pre>\n"
        "- ## Milestones\n  - [ ] nested\n\n## Milestones\n```\n- [ ] code again\n```\n- [ ] real\n"
    )
    assert parse_board(board) == BoardItems(milestones=(BoardMilestone(19, "real", False),))


def test_a_section_of_another_name_says_nothing() -> None:
    assert (
        parse_board("## Ideas\n- [ ] a\n### Decision #1\n- **Status**: maybe\n\n# Milestones\n- b\n")
        == BoardItems()
    )


def test_what_is_said_to_be_nothing_is_nothing() -> None:
    assert (
        parse_board("## Risks\n- 无\n-\n## Milestones\n- none\n## 更新日志\n- —\n## Tasks\n- N/A\n")
        == BoardItems()
    )


def test_an_update_ends_where_the_next_thing_begins() -> None:
    board = (
        "## Milestones\n- [ ] a\n\n### Update - 2026-03-01T09:00:00Z\n**Author**: pm\nfirst\n### Details\n- [x] b\n\n"
        "    code\n\n### 更新 - 2026-03-01T09:00:00Z\n**操作者**: human:Ada Lovelace\n\n## 里程碑\n- [x] c\n"
    )
    said = parse_board(board)
    assert said.milestones == (BoardMilestone(2, "a", False), BoardMilestone(16, "c", True))
    assert said.updates == (
        BoardUpdate(4, NINE, "pm", "first\n### Details\n- [x] b\n\n    code"),
        BoardUpdate(12, NINE, "human:Ada Lovelace", ""),
    )
    assert said.problems == ()


def test_an_entry_may_follow_an_update_within_its_section() -> None:
    board = (
        "## Tasks\n### Update - 2026-03-01T09:00:00Z\n**Author**: pm\n\n### Notes\nx\n\n"
        "### Task #1\n- **Description**: a\n- **Status**: done\n- **Progress**: 100%\n"
    )
    said = parse_board(board)
    assert said.updates == (BoardUpdate(2, NINE, "pm", "### Notes\nx"),)
    assert said.tasks == (BoardTask(8, "1", "a", "done", 100, ""),)
    assert said.problems == ()


def test_a_heading_about_updates_is_no_update() -> None:
    assert parse_board("## Knowledge\n### Update procedure\nx\n### Update - how\ny\n") == BoardItems()


def test_a_person_may_be_the_author_of_a_line_in_the_log() -> None:
    said = parse_board("## Update log\n- [2026-03-01T09:00:00Z] human:Ada Lovelace: see: here\n")
    assert said.log == (BoardLogEntry(2, NINE, "human:Ada Lovelace", "see: here"),)


def test_a_box_is_no_link() -> None:
    said = parse_board("## Milestones\n- [x]: all\n- [x](y) some\n- [X] *done*\n\n[x]: /url\n")
    assert said.milestones == (BoardMilestone(4, "done", True),)
    assert [(problem.line, problem.rule) for problem in said.problems] == [(2, "no_box"), (3, "no_box")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(end: str) -> None:
    assert parse_board(CHINESE.replace("\n", end)) == parse_board(CHINESE)


DECISION = {
    "Time": "2026-03-01T09:00:00Z",
    "Proposer": "ada",
    "Content": "go",
    "Signed by": "ada",
    "Status": "approved",
}
TASK = {"Description": "a", "Status": "done", "Progress": "100%"}


def entry(heading: str, fields: dict[str, str], **changed: str) -> str:
    """An entry whose fields begin on line 3."""
    given = {**fields, **{name.replace("_", " "): value for name, value in changed.items()}}
    return f"## Decisions\n### {heading}\n" + "".join(f"- **{name}**: {given[name]}\n" for name in given)


def without(fields: dict[str, str], name: str) -> dict[str, str]:
    return {each: value for each, value in fields.items() if each != name}


@pytest.mark.parametrize(
    ("board", "problems"),
    [
        (entry("Decision", DECISION), [(2, "no_id", "Decision")]),
        (entry("Something", DECISION), [(2, "no_id", "Something")]),
        (entry("Decision #{id}", DECISION), [(2, "no_id", "Decision #{id}")]),
        ("## Tasks\nnow:\n- write\n- test\n", [(3, "outside_entry", "write")]),
        (entry("Decision #1", {}), [(2, "missing_field", name) for name in DECISION]),
        *((entry("Decision #1", without(DECISION, name)), [(2, "missing_field", name)]) for name in DECISION),
        *((entry("Task #1", without(TASK, name)), [(2, "missing_field", name)]) for name in TASK),
        (entry("Decision #1", DECISION, Content=""), [(5, "missing_field", "Content")]),
        (entry("Decision #1", DECISION, Proposer="{agentName}"), [(2, "missing_field", "Proposer")]),
        (entry("决策 #1", without(DECISION, "Content")), [(2, "missing_field", "内容")]),
        (entry("Decision #1", {**DECISION, "状态": "被否决"}), [(8, "doubled_field", "状态")]),
        (entry("Decision #1", DECISION, Time="yesterday"), [(3, "bad_time", "yesterday")]),
        (entry("Decision #1", DECISION, Time="2026-03-01"), [(3, "bad_time", "2026-03-01")]),
        (
            entry("Decision #1", DECISION, Time="2026-03-01T09:00:00"),
            [(3, "bad_time", "2026-03-01T09:00:00")],
        ),
        (entry("Decision #1", DECISION, Time="2026-03-01 09:00Z"), [(3, "bad_time", "2026-03-01 09:00Z")]),
        (
            entry("Decision #1", DECISION, Time="2026-02-30T09:00:00Z"),
            [(3, "bad_time", "2026-02-30T09:00:00Z")],
        ),
        (entry("Decision #1", DECISION, Status="done"), [(7, "bad_status", "done")]),
        (entry("Task #1", TASK, Status="approved"), [(4, "bad_status", "approved")]),
        *(
            (entry("Task #1", TASK, Progress=value), [(5, "bad_progress", value)])
            for value in ("101%", "-1", "4.5%", "half", "٤٠%", "1e2", "9999", "%")
        ),
        (
            entry("Decision #1", DECISION, Time="soon", Status="maybe"),
            [(3, "bad_time", "soon"), (7, "bad_status", "maybe")],
        ),
        ("## Milestones\n- [ ] a\n- b\n- [-] c\n", [(3, "no_box", "b"), (4, "no_box", "[-] c")]),
        ("## Milestones\n\n- [ ]\n", [(3, "no_words", "[ ]")]),
        ("## 执行日志\n- [2026-03-01T09:00:00Z]\n", [(2, "no_words", "[2026-03-01T09:00:00Z]")]),
        (
            "## 更新日志\n- [2026-03-01T09:00:00Z](x) bob: a\n",
            [(2, "no_time", "[2026-03-01T09:00:00Z](x) bob: a")],
        ),
        ("## 更新日志\n- bob: 开始\n", [(2, "no_time", "bob: 开始")]),
        ("## 更新日志\n- [昨天] bob: 开始\n", [(2, "bad_time", "昨天")]),
        ("## 更新日志\n- [2026-03-01T09:00:00Z] 开始\n", [(2, "no_author", "[2026-03-01T09:00:00Z] 开始")]),
        (
            "## Update log\n- [2026-03-01T09:00:00Z] see http://x\n  and: y\n",
            [(2, "no_author", "[2026-03-01T09:00:00Z] see http://x\nand: y")],
        ),
        ("x\n### Update - 2026\n**Author**: a\n", [(2, "bad_time", "2026")]),
        ("x\n### Update - 2026-03-01T09:00:00Z\nno author\n", [(2, "missing_field", "Author")]),
        ("x\n### 更新 - 2026-03-01T09:00:00Z\n", [(2, "missing_field", "操作者")]),
        ("## Update log\n### Update - today\n**Author**: a\n", [(2, "bad_time", "today")]),
    ],
)
def test_what_is_malformed_is_reported_and_no_item(board: str, problems: list[tuple[int, str, str]]) -> None:
    said = parse_board(board)
    assert [tuple(problem) for problem in said.problems] == problems
    assert not any((said.decisions, said.tasks, said.log, said.updates))
    for problem in said.problems:
        assert problem.words in problem.message("en")
        assert problem.words in problem.message("zh")
        assert problem.message("en") != problem.message("zh")


def test_the_first_of_two_entries_with_one_id_stands() -> None:
    board = entry("Task #1", TASK) + entry("任务 #1", TASK, Description="b") + entry("Decision #1", DECISION)
    said = parse_board(board)
    assert [task.description for task in said.tasks] == ["a"]
    assert [tuple(problem) for problem in said.problems] == [(7, "doubled_id", "1")]
    assert [decision.id for decision in said.decisions] == ["1"]


def test_an_item_beside_a_malformed_one_is_still_found() -> None:
    said = parse_board(entry("Task #1", TASK, Progress="half") + entry("Task #2", TASK))
    assert [task.id for task in said.tasks] == ["2"]
    assert len(said.problems) == 1


# -- long boards


def test_of_a_very_long_list_the_newest_entries_are_read() -> None:
    lines = [f"- [2026-03-01T09:00:00Z] bob: step {number}" for number in range(20_000)]
    said = parse_board("## Ideas\n\n## Update log\n" + "\n".join(lines) + "\n")
    assert 1000 < len(said.log) < len(lines)
    assert [entry.text for entry in said.log] == [f"step {n}" for n in range(20_000 - len(said.log), 20_000)]
    assert said.log[-1].line == 20_003
    assert [tuple(problem) for problem in said.problems] == [(3, "too_long", "Update log")]


def test_what_is_code_is_no_entry_of_a_very_long_list() -> None:
    said = parse_board("## Risks\n- a\n```\n" + "- not a risk\n" * 20_000 + "```\n- the newest\n")
    assert said.risks == (BoardRisk(20_005, "the newest"),)
    assert [problem.rule for problem in said.problems] == ["too_long"]


def test_of_very_many_entries_the_newest_are_read() -> None:
    said = parse_board(
        "## Tasks\n"
        + "".join(
            f"### Task #{n}\n- **Description**: a\n- **Status**: done\n- **Progress**: 1\n"
            for n in range(2500)
        )
    )
    assert said.tasks[-1].id == "2499"
    assert [int(task.id) for task in said.tasks] == list(range(2500 - len(said.tasks), 2500))
    (problem,) = said.problems
    assert (problem.line, problem.rule) == (said.tasks[0].line - 4, "too_long")


def test_an_entry_that_is_too_long_is_reported_and_the_others_are_read() -> None:
    said = parse_board(entry("Task #1", TASK, Description="x " * 30_000) + entry("Task #2", TASK))
    assert [task.id for task in said.tasks] == ["2"]
    assert [tuple(problem) for problem in said.problems] == [(2, "too_long", "Task #1")]


def test_a_text_of_very_many_marks_is_given_as_it_was_written() -> None:
    marks = "![" * 5000
    assert parse_board(f"## Risks\n- {marks}\n").risks == (BoardRisk(2, marks),)


def test_a_milestone_of_very_many_spaces_is_read_at_once() -> None:
    text = "milestone" + " " * 100_000 + "x"
    assert parse_board(f"## Milestones\n- [ ] {text}\n").milestones == (BoardMilestone(2, text, False),)


# -- headings


@pytest.mark.parametrize("kind", HEADINGS)
def test_the_headings_of_a_section_are_the_same_in_both_languages(kind: str) -> None:
    titles = next(titles for each, titles in HEADINGS.items() if each == kind)
    assert is_same_heading(titles["zh"], titles["en"].upper())
    assert section_kind_of(titles["zh"]) == section_kind_of(titles["en"]) == kind


def test_other_headings_are_the_same_if_their_words_are() -> None:
    assert is_same_heading("My  Notes", "my notes")
    assert not is_same_heading("My notes", "Notes")
    assert not is_same_heading("Milestones", "问题与风险")
    assert section_kind_of("My notes") is None


# -- laws


@given(board=boards)
@settings(max_examples=rounds(40, 60))
def test_what_was_written_is_found_again(board: Written) -> None:
    assert parse_board(board.text) == board.items


@given(board=boards)
@settings(max_examples=20)
def test_windows_line_ends_change_nothing(board: Written) -> None:
    assert parse_board(board.text.replace("\n", "\r\n")) == board.items


BITS = [
    "#",
    "##",
    "###",
    "- ",
    "[x]",
    "[",
    "]",
    "**",
    "`",
    "```",
    ":",
    "：",
    "{",
    "}",
    "%",
    "\n",
    "\r",
    "\n\n",
    "> ",
    "<",
    "|",
    "\t",
]
scraps = st.lists(
    st.sampled_from([*BITS, *CHINESE.splitlines(True), *ENGLISH.splitlines(True)]) | st.text(max_size=5),
    max_size=40,
).map("".join)


@st.composite
def mutilated(draw: st.DrawFn) -> str:
    text = draw(boards).text
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        text = text[:start] + draw(st.sampled_from(BITS) | st.text(max_size=3)) + text[end:]
    return text


@given(text=st.text() | scraps | mutilated())
@settings(max_examples=rounds(75, 150))
def test_any_text_is_read_the_same_way_twice_and_says_where_all_of_it_stands(text: str) -> None:
    said = parse_board(text)
    assert said == parse_board(text)
    lines = re.split("\r\n|\r|\n", text)
    for items in said:
        assert [item.line for item in items] == sorted(item.line for item in items)
    for decision in said.decisions:
        assert decision.id in lines[decision.line - 1]
    for task in said.tasks:
        assert task.id in lines[task.line - 1]
    for negotiation in said.negotiations:
        assert negotiation.id in lines[negotiation.line - 1]
    for milestone in said.milestones:
        assert re.search(r"[-*+.)]", lines[milestone.line - 1])
    for update in said.updates:
        assert re.search("update|更新", lines[update.line - 1], re.IGNORECASE)
    for problem in said.problems:
        assert 1 <= problem.line <= len(lines)
        assert problem.message("en")
