"""Sections: found by their headings, changed without touching what is around (BOARDS-9.2)."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from calls import ok, refused
from requirements.boards.conftest import ToolsOf
from requirements.boards.global_board import GLOBAL, text_of, write
from watchroom import Toolbox, Workspace
from watchroom_whiteboards.sections import find_section, parse_sections, section_name

BOARD = """# Plan

Intro.

## Milestones
- [ ] one

```md
## Milestones
not a heading
```

### Later
- [ ] two

## Risks

None.
"""


def test_updating_a_section_leaves_every_other_byte(root: Path, ceo: Toolbox) -> None:
    write(ceo, BOARD)
    result = ok(ceo, "whiteboard_update_section", board=GLOBAL, section="Milestones", content="- [x] one")
    assert (result["version"], result["section"]) == (2, "Milestones")
    before, _, rest = BOARD.partition("- [ ] one")
    assert text_of(root) == before + "- [x] one\n\n" + rest[rest.index("## Risks") :]


def test_a_heading_within_code_is_no_heading(ceo: Toolbox) -> None:
    write(ceo, BOARD)
    assert "not a heading" in ok(ceo, "whiteboard_read", board=GLOBAL, section="Milestones")["content"]
    write(ceo, "# T\n\n```\n## Ghost\n```\n")
    assert refused(ceo, "whiteboard_update_section", board=GLOBAL, section="Ghost", content="x")["error"] == (
        "section_not_found"
    )


def test_a_section_is_found_by_its_title_level_or_place(root: Path, ceo: Toolbox) -> None:
    write(ceo, "# T\n## A\n### Notes\na\n## B\n### Notes\nb\n## Notes\nc\n")
    refusal = refused(ceo, "whiteboard_read", board=GLOBAL, section="Notes")
    assert refusal["error"] == "section_ambiguous"
    assert "### B > Notes (6)" in refusal["suggestion"]
    named = ("## Notes", "B > Notes", "A > ### Notes", "### B > Notes (6)", "Notes (8)")
    for name, text in zip(named, "cbabc", strict=True):
        assert ok(ceo, "whiteboard_read", board=GLOBAL, section=name)["content"].endswith(text)
    for line in (1, 7, 9, 10):
        refusal = refused(ceo, "whiteboard_read", board=GLOBAL, section=f"Notes ({line})")
        assert refusal["error"] == "section_not_found"


def test_a_section_among_many_of_the_same_name_is_found_in_linear_time() -> None:
    """The line of a section is compared only when it is named, and looked up once."""
    board = b"# T\n" + b"text\r\n" * 10_000 + b"## Tasks\nx\n" * 5_000
    sections = parse_sections(board)
    start = time.process_time()
    name = section_name(board, sections[2_501], sections)
    assert (name, find_section(board, GLOBAL, name, sections)) == ("## Tasks (15002)", sections[2_501])
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("heading", "rendered"),
    [
        ("**Plan** for `core`", "Plan for core"),
        ("See [the plan](plan.md)", "See the plan"),
        ("See [the plan][1]", "See the plan"),
        ("*a* \\* b &amp; c", "a * b & c"),
        ("任务　一", "任务 一"),
        ("**状态：**进行中", "状态：进行中"),
        ("Results (2024)", "Results (2024)"),
        ("a > b", "a > b"),
        ("Plan <b>x</b> ##", "Plan <b>x</b>"),
    ],
)
def test_a_section_is_found_as_its_heading_is_written_and_as_it_is_shown(
    ceo: Toolbox, heading: str, rendered: str
) -> None:
    write(ceo, f"# T\n## Above\n### {heading}\ntext\n\n[1]: plan.md\n## Below\n### Other\n")
    written = heading.removesuffix(" ##")
    for named in (rendered, written):
        for shown in (named, f"### {named}", f"Above > {named}", f"Above > ### {named}", f"### {named} (3)"):
            found = ok(ceo, "whiteboard_read", board=GLOBAL, section=shown)
            assert found["content"].startswith(f"### {heading}\ntext")


def test_a_heading_above_is_found_as_it_is_written(ceo: Toolbox) -> None:
    write(ceo, "# T\n## `core`\n### Notes\na\n## Other\n### Notes\nb\n")
    assert ok(ceo, "whiteboard_read", board=GLOBAL, section="`core` > Notes")["content"].endswith("a")


def test_of_two_headings_one_of_which_is_shown_as_the_other_is_written(ceo: Toolbox) -> None:
    write(ceo, "# T\n## `x`\na\n## \\`x\\`\nb\n")
    refusal = refused(ceo, "whiteboard_read", board=GLOBAL, section="`x`")
    assert refusal["error"] == "section_ambiguous"
    assert ok(ceo, "whiteboard_read", board=GLOBAL, section="## `x` (4)")["content"].endswith("b")


def test_a_section_that_is_not_there_is_refused_with_those_that_are(ceo: Toolbox) -> None:
    write(ceo, BOARD)
    refusal = refused(ceo, "whiteboard_update_section", board=GLOBAL, section="Mile", content="x")
    assert refusal["error"] == "section_not_found"
    assert "Milestones" in refusal["suggestion"]


def test_sections_of_the_template_are_found_in_either_language(root: Path, ceo: Toolbox) -> None:
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="里程碑", content="- [x] 第一步")
    assert "## Milestones\n- [x] 第一步\n" in text_of(root)


@pytest.mark.parametrize("content", ["## Sideways", "# Up", "Under\n==="])
def test_a_heading_that_would_end_the_section_is_refused(ceo: Toolbox, content: str) -> None:
    write(ceo, BOARD)
    for tool in ("whiteboard_update_section", "whiteboard_append"):
        refusal = refused(ceo, tool, board=GLOBAL, section="Milestones", content=content)
        assert refusal["error"] == "invalid_section"
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="Milestones", content="### Deeper")


def test_adding_to_a_section_goes_to_its_end(root: Path, ceo: Toolbox) -> None:
    write(ceo, "# T\n## Log\n- one\n\n## Risks\nNone.\n")
    ok(ceo, "whiteboard_append", board=GLOBAL, section="Log", content="- two")
    ok(ceo, "whiteboard_append", board=GLOBAL, section="Risks", content="One, in fact.")
    assert text_of(root) == "# T\n## Log\n- one\n- two\n\n## Risks\nNone.\n\nOne, in fact.\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_what_is_written_gets_the_line_ends_of_the_board(
    root: Path, ceo: Toolbox, end: str, bom: str
) -> None:
    def with_ends(text: str) -> str:
        return bom + text.replace("\n", end)

    write(ceo, with_ends("# T\n## A\na\n\n## B\n- b\n"))
    ok(ceo, "whiteboard_read", board=GLOBAL, section="# T")
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="x\r\ny\nz")
    ok(ceo, "whiteboard_append", board=GLOBAL, section="B", content="- c\n- d")
    expected = "# T\n## A\nx\ny\nz\n\n## B\n- b\n- c\n- d\n"
    board = root / "global-whiteboard.md"
    assert board.read_bytes() == with_ends(expected).encode()
    ok(ceo, "whiteboard_append", board=GLOBAL, content="One.\nTwo.")
    text = board.read_bytes().decode().removeprefix(with_ends(expected))
    assert set(re.findall(r"\r\n|\r|\n", text)) == {end}


def test_two_agents_may_rewrite_different_sections_at_once(root: Path, ceo: Toolbox, cfo: Toolbox) -> None:
    write(ceo, "# T\n## A\na\n\n## B\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="A!")
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="B", content="B!")
    assert text_of(root) == "# T\n## A\nA!\n\n## B\nB!\n"


def test_a_section_that_changed_since_it_was_read_is_a_conflict_to_be_merged(
    root: Path, workspace: Workspace, ceo: Toolbox, cfo: Toolbox
) -> None:
    write(ceo, "# T\n## A\na\n\n## B\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="ceo")
    result = refused(cfo, "whiteboard_update_section", board=GLOBAL, section="A", content="cfo")
    assert result["is_conflict"]
    assert result["your_content"] == "# T\n## A\ncfo\n\n## B\nb\n", "its text on the version it had read"
    assert text_of(root) == "# T\n## A\nceo\n\n## B\nb\n"


def test_reading_a_section_is_enough_to_rewrite_it_and_no_more(ceo: Toolbox, cfo: Toolbox) -> None:
    write(ceo, "# T\n## A\na\n\n## B\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL, section="A")
    assert refused(cfo, "whiteboard_update_section", board=GLOBAL, section="B", content="x")["is_conflict"]
    assert refused(cfo, "whiteboard_write", board=GLOBAL, content="x", message="m")["is_conflict"]
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="A", content="cfo")


def test_of_sections_with_long_titles_the_one_that_was_read_may_be_rewritten(
    workspace: Workspace, ceo: Toolbox, cfo: Toolbox
) -> None:
    first, second = (f"{'Long ' * 60}{number}" for number in (1, 2))
    write(ceo, f"# T\n## {first}\na\n\n## {second}\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL, section=first)
    workspace.flush()
    (row,) = workspace.journal.rows_before(10**9, limit=1)
    assert (row.tool, len(row.path) < 250) == ("whiteboard_read", True)
    assert refused(cfo, "whiteboard_update_section", board=GLOBAL, section=second, content="x")["is_conflict"]
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section=first, content="cfo")


def test_whoever_rewrote_a_section_knows_it_whatever_others_wrote_elsewhere(
    workspace: Workspace, ceo: Toolbox, cfo: Toolbox
) -> None:
    write(ceo, "# T\n## A\na\n\n## B\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="A", content="one")
    ok(ceo, "whiteboard_append", board=GLOBAL, content="An entry.")
    again = workspace.tools("cfo")
    ok(again, "whiteboard_update_section", board=GLOBAL, section="A", content="two")
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="mine", expected_version=4)
    refusal = refused(again, "whiteboard_update_section", board=GLOBAL, section="A", content="three")
    assert refusal["is_conflict"]


def test_what_a_call_of_another_process_read_counts(root: Path, workspace: Workspace, ceo: Toolbox) -> None:
    write(ceo, "# T\n## A\na\n")
    for _ in range(2):
        ok(workspace.tools("cfo"), "whiteboard_read", board=GLOBAL, section="A")
        ok(workspace.tools("cfo"), "whiteboard_update_section", board=GLOBAL, section="A", content="anew")


@pytest.mark.parametrize("tool", ["whiteboard_append", "whiteboard_update_section"])
def test_whoever_adds_to_a_board_has_not_seen_the_rest_of_it(
    workspace: Workspace, ceo: Toolbox, cfo: Toolbox, tool: str
) -> None:
    write(ceo, "# T\n## A\na\n\n## B\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="B", content="news")
    ok(cfo, tool, board=GLOBAL, content="mine", **({} if tool == "whiteboard_append" else {"section": "A"}))
    again = workspace.tools("cfo")
    for call, more in (
        ("whiteboard_update_section", {"section": "B"}),
        ("whiteboard_write", {"message": "m"}),
    ):
        assert refused(again, call, board=GLOBAL, content="x", **more)["is_conflict"], call


def test_having_read_one_of_two_sections_of_one_path_is_not_having_read_the_other(
    ceo: Toolbox, cfo: Toolbox
) -> None:
    write(ceo, "# A\n## Notes\na\n# B\n## Notes\nb\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="Notes (5)", content="news")
    ok(cfo, "whiteboard_read", board=GLOBAL, section="Notes (2)")
    refusal = refused(cfo, "whiteboard_update_section", board=GLOBAL, section="Notes (5)", content="x")
    assert refusal["is_conflict"]
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="Notes (2)", content="x")


def test_many_entries_later_an_agent_still_knows_its_own_section(ceo: Toolbox, cfo: Toolbox) -> None:
    write(ceo, "# T\n## A\na\n\n## End\n")
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="A", content="one")
    for number in range(120):
        ok(ceo, "whiteboard_append", board=GLOBAL, content=f"Entry {number}.")
    ok(cfo, "whiteboard_update_section", board=GLOBAL, section="A", content="two")


@pytest.mark.parametrize(
    ("board", "content"),
    [
        ("# T\n## Plan\ntext\n\n  ## Risks\nr\n", "- [ ] a\n- [ ] b"),
        ("# T\n## A | B\ntext\n", "---|---\n1|2"),
        ("# T\n## [x]\ntext\n## Plan\np\n", "[x]: /url"),
    ],
)
def test_a_text_that_changes_the_headings_around_it_is_refused(
    root: Path, ceo: Toolbox, board: str, content: str
) -> None:
    write(ceo, board)
    section = "A | B" if "A | B" in board else "Plan"
    for tool in ("whiteboard_update_section", "whiteboard_append"):
        result = ceo.dispatch_tool_call(tool, {"board": GLOBAL, "section": section, "content": content})
        if not result["success"]:
            assert result["error"] == "invalid_section"
    assert [line for line in text_of(root).splitlines() if "## " in line] == [
        line for line in board.splitlines() if "## " in line
    ]
    for named in ("Risks", "A | B", "Plan"):
        if named in board:
            ok(ceo, "whiteboard_read", board=GLOBAL, section=named)


@pytest.mark.parametrize("named", ["A > B", "# C", "Twin (8)", "### Up > Twin (10)"])
def test_every_section_can_be_named(ceo: Toolbox, named: str) -> None:
    write(ceo, "# T\n## A > B\n1\n## \\# C\n2\n## Up\n### Twin\n3\n### Twin\n4\n".replace("## Up", "\n## Up"))
    assert ok(ceo, "whiteboard_read", board=GLOBAL, section=named)["content"]


def test_updating_an_empty_section_with_nothing_changes_nothing(root: Path, ceo: Toolbox) -> None:
    write(ceo, "# T\n## A\n\n## B\nb\n")
    for _ in range(3):
        ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="")
    assert text_of(root) == "# T\n## A\n\n## B\nb\n"


def test_a_board_keeps_its_line_ends(root: Path, ceo: Toolbox) -> None:
    write(ceo, "# T\r\n## A\r\na\r\n\r\n## B\r\nb\r\n")
    ok(ceo, "whiteboard_update_section", board=GLOBAL, section="A", content="one\ntwo")
    assert (root / "global-whiteboard.md").read_bytes() == (b"# T\r\n## A\r\none\r\ntwo\r\n\r\n## B\r\nb\r\n")


@pytest.mark.parametrize(
    "content", ["## Milestones\n- [x] all", "### Update - now\n**Author**: ceo", "Up\n---"]
)
def test_an_entry_cannot_begin_sections_or_other_entries(tools_of: ToolsOf, content: str) -> None:
    refusal = refused(tools_of("anna"), "whiteboard_append", board=GLOBAL, content=content)
    assert refusal["error"] == "invalid_section"
    ok(tools_of("anna"), "whiteboard_append", board=GLOBAL, content="#### Fine")


@pytest.mark.parametrize("tool", ["whiteboard_update_section", "whiteboard_append"])
def test_the_last_section_takes_no_open_block_either(ceo: Toolbox, tool: str) -> None:
    write(ceo, BOARD)
    refusal = refused(ceo, tool, board=GLOBAL, section="Risks", content="```\nopen")
    assert refusal["error"] == "invalid_section"


def test_which_of_two_sections_of_one_path_was_read_is_told(ceo: Toolbox) -> None:
    write(ceo, "# A\n## Notes\na\n# B\n## Notes\nb\n")
    result = ok(ceo, "whiteboard_read", board=GLOBAL, section="Notes (5)")
    assert result["section"] == "## Notes (5)"
    assert ok(ceo, "whiteboard_read", board=GLOBAL, section=result["section"])["content"] == result["content"]
