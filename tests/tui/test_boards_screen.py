"""The boards screen: the layers, the board that is read, what it says, and writing on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok, refused
from team_boards import TEAM, current, fill
from tui.boarding import to_boards
from tui.driving import NARROW, Desk, dashboard, past
from watchroom import Workspace
from watchroom_tui.widgets.board_panel import BoardPanel


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=TEAM) as opened:
        fill(opened)
        yield opened


def summary(desk: Desk) -> list[tuple[str, str]]:
    return [
        (item.kind, item.text) for item in desk.app.screen.query_one(BoardPanel).items if not item.is_heading
    ]


def names(desk: Desk) -> list[str]:
    return [item.name for item in desk.list("boards").items]


async def test_the_layers_are_a_tree_with_owners_versions_and_what_is_not_written(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        assert names(desk) == [
            "global",
            "top-layer",
            "mid-layer-architect",
            "bottom-layer-ada",
            "bottom-layer-zoe",
        ]
        await desk.sees("├ top layer", "│ ╰ architect", "│   ╰ ada", "╰ zoe", "v3", "–")
        assert [item.owners for item in desk.list("boards").items] == [
            (),
            ("ceo",),
            ("anna",),
            ("ada",),
            ("zoe",),
        ]


async def test_the_board_under_the_cursor_is_rendered_and_follows_what_agents_write(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees("global  v3 · anna")
        assert not desk.shows("## Task overview")
        await desk.press("down", "down", "down")
        await desk.sees("Clean the data")
        ok(
            workspace.tools("ada"),
            "whiteboard_append",
            board="bottom-layer-ada",
            content="**Halfway** there.",
        )
        await desk.sees("v2 · ada")
        await desk.press("enter", "G")
        await desk.sees("Halfway there.")


async def test_a_board_that_nobody_wrote_shows_its_template(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.press("G")
        await desk.sees("Bottom layer - helper", "nobody wrote it yet")
        assert workspace.journal.head("board", "bottom-layer-zoe") is None


async def test_the_panel_says_how_far_everything_is_and_leads_to_it(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees("Milestones 3", "67 %", "☑ Outline agreed", "☐ First draft reviewed", "✓ #1 Publish")
        assert ("decision", "#1 Publish in two parts") in summary(desk)
        assert not any("#2" in text for kind, text in summary(desk) if kind == "decision"), "its time is none"
        (problem,) = [text for kind, text in summary(desk) if kind == "problem"]
        assert "yesterday" in problem
        assert ("log", "Twelve sources are in.") in summary(desk)
        panel = desk.app.screen.query_one(BoardPanel)
        panel.move_to(("log", "Twelve sources are in.", "anna", False))
        panel.focus()
        await desk.press("enter")
        await desk.until(lambda: desk.pane == "board", "the board")
        await desk.sees("### Update")


async def test_the_panel_follows_the_board(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees("67 %")
        ok(
            workspace.tools("ceo"),
            "whiteboard_update_section",
            board="global",
            section="Milestones",
            content="- [x] All",
        )
        await desk.sees("100 %")


async def test_who_holds_a_board_is_seen_until_the_lease_ends(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        leases = workspace.boards.leases
        lease = leases.acquire("ceo", "top-layer", seconds=60)
        await desk.sees("✎ ceo")
        leases.release(lease)
        await desk.sees_no("✎ ceo")


async def test_what_came_elsewhere_is_marked_until_it_is_looked_at(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        ok(workspace.tools("ceo"), "whiteboard_append", board="top-layer", content="Notifications.")
        await desk.sees("● ├ top layer")
        await desk.press("down", "up")
        await desk.sees_no("● ├ top layer")


async def test_words_are_found_and_gone_to(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.press("enter", "slash")
        await desk.type("twelve")
        await desk.sees("/twelve▏ 1 found", "Twelve sources are in.")
        await desk.press("enter")
        await desk.sees("/twelve 1 found")
        await desk.press("escape")
        await desk.sees_no("/twelve")


async def test_headings_are_chosen_from_the_outline(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.press("enter", "o")
        await desk.until(lambda: desk.place == "OutlineDialog", "the outline")
        outline = desk.list("outline")
        await desk.until(lambda: len(outline.items) > 8, "the headings")
        assert [item.title for item in outline.items][:3] == [
            "Global board - {taskName}",
            "Task overview",
            "Core goals",
        ]
        await desk.press("G", "enter")
        await desk.until(lambda: desk.place == "boards", "the screen")
        await desk.sees("Twelve sources are in.")


async def test_an_edit_by_hand_of_a_board_that_nobody_wrote_is_marked_and_settled(
    workspace: Workspace, root: Path
) -> None:
    (root / "whiteboards/top-layer.md").write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees("⚔")
        await desk.press("down", "c")
        await desk.until(lambda: desk.place == "merge", "the merge")
        await desk.sees("By hand.")


async def test_a_lease_that_runs_out_is_seen_to_end(workspace: Workspace) -> None:
    workspace.boards.leases.acquire("ceo", "top-layer", seconds=1.5)
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees_no("✎ ceo")


async def test_a_conflict_of_an_agent_is_settled_from_here(workspace: Workspace) -> None:
    result = refused(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content="# Mine\n",
        message="m",
        expected_version=1,
    )
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.sees("⚔")
        await desk.press("exclamation_mark")
        await desk.until(lambda: desk.place == "merge", "the merge")
        await desk.sees("incoming · ceo")
        await desk.press("D")
        await desk.until(lambda: desk.place == "ConfirmDialog", "the question")
        await desk.press("y")
        await desk.until(lambda: desk.place == "boards", "the screen")
        await desk.sees_no("⚔")
    (row,) = [row for row in workspace.journal.rows() if row.tool == "dismiss_conflict"]
    assert (row.zone, row.path, row.detail["conflict"]) == ("board", "global", result["conflict_id"])


async def test_an_edit_by_hand_is_settled_from_here(workspace: Workspace, root: Path) -> None:
    file = root / "global-whiteboard.md"
    file.write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await desk.press("c")
        await desk.until(lambda: desk.place == "merge", "the merge")
        await desk.sees("By hand.")
        await desk.press("R")
        await desk.until(lambda: desk.place == "ConfirmDialog", "the question")
        await desk.press("y")
        await desk.until(lambda: desk.place == "boards", "the screen")
    assert file.read_text(encoding="utf-8") == current(workspace)
    assert workspace.verify() == []


async def test_versions_are_compared_and_one_is_brought_back(workspace: Workspace) -> None:
    before = current(workspace)
    ok(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content="# Gone\n",
        message="oops",
        expected_version=3,
    )
    async with dashboard(workspace) as desk:
        await to_boards(desk, "Gone")
        await desk.press("v")
        await desk.until(lambda: desk.place == "board_versions", "the versions")
        await desk.sees("oops", "− # Global board")
        await desk.press("down")
        await desk.sees("+ Twelve sources are in.")
        await desk.press("r")
        await desk.until(lambda: desk.place == "RestoreDialog", "the question")
        await desk.is_asked("version 3")
        await desk.press("y")
        await desk.until(lambda: desk.place == "board_versions", "the versions")
        await desk.sees("v5")
    assert current(workspace) == before


async def test_the_past_shows_boards_as_they_were_and_offers_no_acts(workspace: Workspace) -> None:
    first = workspace.journal.history("board", "global")[0]
    async with past(workspace.journal, first.seq) as desk:
        await desk.goes_to("6", "boards")
        await desk.sees("global  v1", "67 %")
        assert not desk.shows(" e edit")
        await desk.press("e")
        await desk.is_told("the past")
        assert desk.place == "boards"


async def test_what_agents_write_is_neither_markup_nor_an_escape_sequence(workspace: Workspace) -> None:
    evil = "# [@click=app.quit]x[/]\n\n\x1b]0;owned\x07 &#8238;abc <b>bold</b> [/nothing]\n"
    ok(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content=evil,
        message="\x1b[31m",
        expected_version=3,
    )
    async with dashboard(workspace) as desk:
        await to_boards(desk, "[@click=app.quit]x[/]")
        await desk.sees("<b>bold</b>", "[/nothing]")
        assert not any("\x1b" in line or "\u202e" in line for line in desk.lines())


async def test_at_80_columns_the_panes_are_tabs(workspace: Workspace) -> None:
    async with dashboard(workspace, size=NARROW) as desk:
        await desk.goes_to("6", "boards")
        await desk.sees("top layer")
        assert desk.shown_panes() == ["boards"]
        await desk.press("enter")
        await desk.sees("Task overview")
        assert desk.shown_panes() == ["board"]
        await desk.press("tab")
        await desk.sees("☑ Outline agreed")
        assert desk.shown_panes() == ["summary"]
