"""Writing and adding to boards, and the versions that come of it (BOARDS-5.2, BOARDS-6, BOARDS-8)."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from requirements.boards.conftest import ToolsOf
from requirements.boards.global_board import GLOBAL, text_of, write
from watchroom import Toolbox, Workspace

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


# Versions


def test_a_board_that_nobody_wrote_is_read_as_its_template(root: Path, ceo: Toolbox) -> None:
    result = ok(ceo, "whiteboard_read", board=GLOBAL)
    assert (result["version"], result["current_version"]) == (0, 0)
    assert "## Milestones" in result["content"]
    assert not (root / "global-whiteboard.md").exists()


def test_a_first_write_makes_the_file_and_its_first_version(
    root: Path, workspace: Workspace, ceo: Toolbox
) -> None:
    ok(ceo, "whiteboard_read", board=GLOBAL)
    written = ok(ceo, "whiteboard_write", board=GLOBAL, content="# Ours\n", message="begin")
    assert written["version"] == 1
    assert text_of(root) == "# Ours\n"
    workspace.flush()
    assert (root / "whiteboard-history/global-whiteboard-v1.md").read_text(encoding="utf-8") == "# Ours\n"


def test_the_files_of_the_layers_lie_where_the_spec_says(root: Path, tools_of: ToolsOf) -> None:
    for actor, board in (("ceo", "top-layer"), ("anna", "mid-layer-architect"), ("ada", "bottom-layer-ada")):
        ok(tools_of(actor), "whiteboard_append", board=board, content="Here.")
        assert (root / f"whiteboards/{board}.md").is_file()


def test_a_stale_write_is_refused_with_everything_to_recover(
    root: Path, workspace: Workspace, ceo: Toolbox, cfo: Toolbox
) -> None:
    for tools in (ceo, cfo):
        ok(tools, "whiteboard_read", board=GLOBAL)
    ok(ceo, "whiteboard_write", board=GLOBAL, content="# Content A\n", message="a")
    result = refused(cfo, "whiteboard_write", board=GLOBAL, content="# Content B\n", message="b")
    assert (result["error"], result["is_conflict"]) == ("version_conflict", True)
    assert (result["base_version"], result["current_version"]) == (0, 1)
    assert (result["current_author"], result["current_content"]) == ("ceo", "# Content A\n")
    assert result["your_content"] == "# Content B\n"
    assert "whiteboard_write" in result["suggestion"]
    assert text_of(root) == "# Content A\n"
    assert workspace.journal.content(result["conflict_id"]) == "# Content B\n"


def test_whoever_never_read_a_board_cannot_write_over_it(ceo: Toolbox, cfo: Toolbox) -> None:
    ok(ceo, "whiteboard_append", board=GLOBAL, content="First.")
    assert refused(cfo, "whiteboard_write", board=GLOBAL, content="x", message="m")["is_conflict"]
    ok(cfo, "whiteboard_read", board=GLOBAL)
    ok(cfo, "whiteboard_write", board=GLOBAL, content="x", message="m")


def test_an_unchecked_write_says_what_it_wrote_over(ceo: Toolbox, cfo: Toolbox) -> None:
    ok(ceo, "whiteboard_append", board=GLOBAL, content="First.")
    result = ok(cfo, "whiteboard_write", board=GLOBAL, content="x", message="m", expected_version=-1)
    assert (result["overwrote_version"], result["overwrote_author"]) == (1, "ceo")


@pytest.mark.parametrize("content", ["a\0b", "half \ud800", "x" * (10 * 1024 * 1024 + 1)])
def test_a_text_that_no_board_may_hold_is_refused(root: Path, ceo: Toolbox, content: str) -> None:
    ok(ceo, "whiteboard_append", board=GLOBAL, content="Kept.")
    before = text_of(root)
    for tool, more in (
        ("whiteboard_write", {"message": "m", "expected_version": -1}),
        ("whiteboard_append", {}),
        ("whiteboard_update_section", {"section": "Milestones"}),
    ):
        refusal = refused(ceo, tool, board=GLOBAL, content=content, **more)
        assert refusal["error"] in ("not_text", "too_large", "invalid_arguments")
    assert text_of(root) == before


def test_ten_megabytes_are_written_and_what_would_exceed_them_is_refused(root: Path, ceo: Toolbox) -> None:
    limit = 10 * 1024 * 1024
    line = "Some words of a very long board, in a line.\n"
    text = ("# Long\n" + line * (limit // len(line) + 1))[:limit]
    ok(ceo, "whiteboard_write", board=GLOBAL, content=text, message="long", expected_version=-1)
    assert refused(ceo, "whiteboard_append", board=GLOBAL, content="One more.")["error"] == "too_large"
    assert len(text_of(root)) == limit


# Appending


def test_an_append_is_signed_with_author_and_time(root: Path, tools_of: ToolsOf) -> None:
    ok(tools_of("anna"), "whiteboard_append", board=GLOBAL, content="The plan stands.\n")
    entry = rf"\n\n### Update - {ISO}\n\*\*Author\*\*: anna\n\nThe plan stands\.\n$"
    assert re.search(entry, text_of(root))
    assert text_of(root).startswith("# Global board"), "it goes beneath the template"


def test_an_append_is_signed_in_the_language_of_the_workspace(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "zh", agents=["alice"], language="zh") as workspace:
        ok(workspace.tools("alice"), "whiteboard_append", board="bottom-layer-alice", content="开始。")
        text = (tmp_path / "zh/whiteboards/bottom-layer-alice.md").read_text(encoding="utf-8")
    assert re.search(rf"### 更新 - {ISO}\n\*\*操作者\*\*: alice\n\n开始。\n$", text)


def test_an_append_needs_no_reading_and_is_never_a_conflict(ceo: Toolbox, tools_of: ToolsOf) -> None:
    for number in range(5):
        actor = ("ceo", "anna", "paul")[number % 3]
        result = ok(tools_of(actor), "whiteboard_append", board=GLOBAL, content=f"Entry {number}.")
        assert result["version"] == number + 1


def test_appends_of_many_threads_all_land_in_the_order_of_the_journal(
    workspace: Workspace, root: Path, tools_of: ToolsOf
) -> None:
    actors = ("ceo", "cfo", "anna", "paul")
    with ThreadPoolExecutor(8) as pool:
        for number in range(80):
            tools = tools_of(actors[number % 4])
            pool.submit(ok, tools, "whiteboard_append", board=GLOBAL, content=f"Entry {number}.")
    rows = workspace.journal.history("board", GLOBAL)
    assert len(rows) == 80
    assert workspace.journal.refused("board", GLOBAL) == []
    signed = re.findall(r"\*\*Author\*\*: (\w+)\n\n(Entry \d+\.)", text_of(root))
    assert signed == [(row.actor, row.message) for row in rows]


@pytest.mark.parametrize(
    "open_block", ["```\ncode", "~~~~ py\n## not a heading", "<!-- a comment", "<script>\nx"]
)
def test_an_append_stands_in_no_block_that_the_board_left_open(ceo: Toolbox, open_block: str) -> None:
    ok(
        ceo,
        "whiteboard_write",
        board=GLOBAL,
        content=f"# T\n\n{open_block}",
        message="m",
        expected_version=-1,
    )
    ok(ceo, "whiteboard_append", board=GLOBAL, content="Seen.")
    shown = ok(ceo, "whiteboard_read", board=GLOBAL)["content"]
    entry = next(line.removeprefix("### ") for line in shown.splitlines() if line.startswith("### Update"))
    assert "Seen." in ok(ceo, "whiteboard_read", board=GLOBAL, section=entry)["content"]


@pytest.mark.parametrize("content", ["```\nopen", "<!-- open", "fine\n\n~~~"])
def test_a_text_that_would_swallow_what_follows_is_refused(
    workspace: Workspace, ceo: Toolbox, content: str
) -> None:
    ok(ceo, "whiteboard_append", board=GLOBAL, content="Kept.")
    for tool, more in (
        ("whiteboard_append", {}),
        ("whiteboard_append", {"section": "Milestones"}),
        ("whiteboard_update_section", {"section": "Milestones"}),
    ):
        refusal = refused(ceo, tool, board=GLOBAL, content=content, **more)
        assert refusal["error"] == "invalid_section"
        (row, *_) = workspace.journal.refused("board", GLOBAL)
        assert workspace.journal.content(row.seq) == content


# History (BOARDS-8)


def test_the_ten_newest_versions_lie_in_the_history_and_all_in_the_journal(
    root: Path, workspace: Workspace, ceo: Toolbox
) -> None:
    for number in range(1, 14):
        write(ceo, f"# {number}\n")
    workspace.flush()
    files = {path.name for path in (root / "whiteboard-history").iterdir()}
    assert files == {f"global-whiteboard-v{number}.md" for number in range(4, 14)}
    history = ok(ceo, "whiteboard_history", board=GLOBAL)["history"]
    assert [each["version"] for each in history] == list(range(1, 14))
    assert workspace.verify() == []


def test_versions_are_compared(ceo: Toolbox) -> None:
    for text in ("# T\none\n", "# T\ntwo\n", "# T\nthree\n"):
        write(ceo, text)
    result = ok(ceo, "whiteboard_history", board=GLOBAL, diff_from=1, diff_to=2, limit=1)
    assert "-one\n+two\n" in result["diff"]
    assert "+three" in ok(ceo, "whiteboard_history", board=GLOBAL, diff_from=1)["diff"]


def test_an_earlier_version_comes_back_as_the_newest(root: Path, ceo: Toolbox, cfo: Toolbox) -> None:
    for text in ("# One\n", "# Two\n"):
        write(ceo, text)
    assert refused(cfo, "whiteboard_restore", board=GLOBAL, version=1, expected_version=1)["is_conflict"]
    result = ok(cfo, "whiteboard_restore", board=GLOBAL, version=1)
    assert (result["new_version"], result["restored_version"]) == (3, 1)
    assert text_of(root) == "# One\n"
    assert refused(ceo, "whiteboard_restore", board=GLOBAL, version=9)["error"] == "version_not_found"


def test_an_earlier_version_is_read_without_bringing_the_reader_up_to_date(
    ceo: Toolbox, cfo: Toolbox
) -> None:
    for text in ("# One\n", "# Two\n"):
        write(ceo, text)
    read: dict[str, Any] = ok(cfo, "whiteboard_read", board=GLOBAL, version=1)
    assert (read["content"], read["version"], read["current_version"]) == ("# One\n", 1, 2)
    assert refused(cfo, "whiteboard_write", board=GLOBAL, content="x", message="m")["is_conflict"]
