"""Leases, versions, appends and sections (spec 3 §5, §6, §9.2)."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from spec3.conftest import ToolsOf
from watchroom import Toolbox, Workspace
from watchroom_whiteboards import Whiteboards

GLOBAL = "global"
ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def ceo(tools_of: ToolsOf) -> Toolbox:
    return tools_of("ceo")


@pytest.fixture
def cfo(tools_of: ToolsOf) -> Toolbox:
    return tools_of("cfo")


@pytest.fixture
def boards(workspace: Workspace) -> Whiteboards:
    return Whiteboards.of(workspace)


def lock_file(root: Path) -> Path:
    return root / "whiteboards/.locks/global-whiteboard.lock"


def text_of(root: Path) -> str:
    return (root / "global-whiteboard.md").read_text(encoding="utf-8")


# Versions


def test_a_board_that_nobody_wrote_is_read_as_its_template(root: Path, ceo: Toolbox) -> None:
    result = ok(ceo, "whiteboard_read", board=GLOBAL)
    assert (result["version"], result["current_version"]) == (0, 0)
    assert "## Milestones" in result["content"]
    assert not (root / "global-whiteboard.md").exists()


def test_a_first_write_makes_the_file_and_its_first_version(root: Path, ceo: Toolbox) -> None:
    ok(ceo, "whiteboard_read", board=GLOBAL)
    written = ok(ceo, "whiteboard_write", board=GLOBAL, content="# Ours\n", message="begin")
    assert written["version"] == 1
    assert text_of(root) == "# Ours\n"
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


# Leases (§5.1)


def test_a_lease_lasts_five_seconds_and_is_seen_in_the_locks(root: Path, boards: Whiteboards) -> None:
    lease = boards.hold("ceo", GLOBAL)
    shown = json.loads(lock_file(root).read_text(encoding="utf-8"))
    assert shown == {
        "lockId": lease.id,
        "whiteboardPath": "global-whiteboard.md",
        "agentId": "ceo",
        "acquiredAt": lease.taken,
        "expiresAt": lease.taken + 5000,
    }
    assert boards.release(lease)
    assert not lock_file(root).exists()
    assert not boards.release(lease)


def test_nobody_else_writes_under_a_lease_and_its_holder_does(
    boards: Whiteboards, ceo: Toolbox, cfo: Toolbox
) -> None:
    boards.hold("ceo", GLOBAL)
    refusal = refused(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)
    assert refusal["error"] == "board_leased"
    assert "ceo" in refusal["message"]
    ok(ceo, "whiteboard_append", board=GLOBAL, content="mine")
    ok(cfo, "whiteboard_read", board=GLOBAL)


def test_a_lease_on_one_board_holds_nobody_off_another(boards: Whiteboards, cfo: Toolbox) -> None:
    boards.hold("ceo", GLOBAL)
    ok(cfo, "whiteboard_append", board="top-layer", content="x", wait_seconds=0)


def test_taking_it_again_extends_it_and_keeps_its_id(root: Path, boards: Whiteboards) -> None:
    first = boards.hold("ceo", GLOBAL, seconds=1)
    again = boards.hold("ceo", GLOBAL, seconds=60)
    assert (again.id, again.taken) == (first.id, first.taken)
    assert again.until > first.until
    assert again.token > first.token
    assert json.loads(lock_file(root).read_text(encoding="utf-8"))["expiresAt"] == again.until
    assert boards.release(first), "it is one lease"


def test_a_write_under_ones_own_lease_extends_it(
    workspace: Workspace, boards: Whiteboards, ceo: Toolbox
) -> None:
    lease = boards.hold("ceo", GLOBAL, seconds=1)
    ok(ceo, "whiteboard_append", board=GLOBAL, content="x")
    held = workspace.boards.leases.current(GLOBAL)
    assert held is not None
    assert (held.id, held.until > lease.until) == (lease.id, True)


def test_within_a_block_the_lease_is_held_and_an_inner_block_does_not_end_it(workspace: Workspace) -> None:
    leases = workspace.boards.leases
    with leases.held("ceo", GLOBAL) as outer:
        with leases.held("ceo", GLOBAL) as inner:
            assert inner.id == outer.id
        assert leases.current(GLOBAL) is not None
    assert leases.current(GLOBAL) is None


def test_a_lease_that_has_run_out_holds_nobody_off_and_is_cleaned_up(
    root: Path, workspace: Workspace, boards: Whiteboards, cfo: Toolbox
) -> None:
    lease = boards.hold("ceo", GLOBAL, seconds=0)
    assert workspace.boards.leases.current(GLOBAL) is None
    assert lock_file(root).exists()
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)
    assert not lock_file(root).exists()
    expired = [row for row in workspace.journal.rows() if row.tool == "lease_expired"]
    assert [(row.actor, row.message) for row in expired] == [("system", "ceo")]
    assert not boards.release(lease)


def test_a_lease_that_somebody_else_took_over_cannot_be_released_by_the_first(
    workspace: Workspace, boards: Whiteboards
) -> None:
    stale = boards.hold("ceo", GLOBAL, seconds=0)
    taken = boards.hold("cfo", GLOBAL)
    assert taken.token > stale.token
    assert not boards.release(stale)
    assert workspace.boards.leases.current(GLOBAL) == taken


def test_a_writer_waits_for_the_lease_instead_of_failing(
    boards: Whiteboards, cfo: Toolbox, workspace: Workspace
) -> None:
    lease = boards.hold("ceo", GLOBAL, seconds=60)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ok, cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=60)
        assert workspace.journal.head("board", GLOBAL) is None
        boards.release(lease)
        assert waiting.result()["version"] == 1


def test_a_writer_waits_until_the_lease_has_run_out(boards: Whiteboards, cfo: Toolbox) -> None:
    boards.hold("ceo", GLOBAL, seconds=0.05)
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=60)


def test_reading_to_write_holds_the_board_until_the_write(root: Path, ceo: Toolbox, cfo: Toolbox) -> None:
    assert ok(ceo, "whiteboard_read", board=GLOBAL, hold=True)["held_for_seconds"] == 5
    assert lock_file(root).exists()
    assert (
        refused(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)["error"]
        == "board_leased"
    )
    ok(ceo, "whiteboard_write", board=GLOBAL, content="# Anew\n", message="m")
    assert not lock_file(root).exists()
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)


def test_a_longer_lease_is_not_shortened_by_its_holders_write(
    workspace: Workspace, boards: Whiteboards, ceo: Toolbox
) -> None:
    lease = boards.hold("ceo", GLOBAL, seconds=600)
    ok(ceo, "whiteboard_append", board=GLOBAL, content="x")
    held = workspace.boards.leases.current(GLOBAL)
    assert held is not None
    assert held.until == lease.until


@pytest.mark.parametrize("seconds", [-1.0, 3601.0, float("inf"), float("nan")])
def test_a_lease_cannot_last_for_ever(boards: Whiteboards, seconds: float) -> None:
    with pytest.raises(ValueError, match="a lease lasts at most"):
        boards.hold("ceo", GLOBAL, seconds=seconds)


def test_a_reading_that_is_refused_leaves_no_lease(root: Path, ceo: Toolbox) -> None:
    refused(ceo, "whiteboard_read", board=GLOBAL, section="nope", hold=True)
    assert not lock_file(root).exists()


def test_a_refused_write_does_not_end_the_lease(root: Path, ceo: Toolbox) -> None:
    ok(ceo, "whiteboard_read", board=GLOBAL, hold=True)
    refused(ceo, "whiteboard_write", board=GLOBAL, content="x", message="m", expected_version=7)
    assert lock_file(root).exists()


# Sections (§9.2)


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


def write(tools: Toolbox, text: str) -> None:
    ok(tools, "whiteboard_write", board=GLOBAL, content=text, message="m", expected_version=-1)


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
    for named, text in (("## Notes", "c"), ("B > Notes", "b"), ("A > ### Notes", "a")):
        assert ok(ceo, "whiteboard_read", board=GLOBAL, section=named)["content"].endswith(text)


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


# History (§8)


def test_the_ten_newest_versions_lie_in_the_history_and_all_in_the_journal(
    root: Path, workspace: Workspace, ceo: Toolbox
) -> None:
    for number in range(1, 14):
        write(ceo, f"# {number}\n")
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
