"""Writing on a board: live preview, drafts, and what happens when somebody else writes as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok
from team_boards import TEAM, current, fill
from textual.widgets import TextArea
from tui.boarding import opens_editor, to_boards
from tui.driving import dashboard
from watchroom import Workspace
from watchroom_tui.widgets.board_text_area import BoardTextArea


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=TEAM) as opened:
        fill(opened)
        yield opened


async def test_a_board_is_written_with_a_live_preview(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        source = desk.app.screen.query_one(BoardTextArea)
        await desk.until(lambda: source.has_focus, "the cursor in it")
        await desk.type("# Ours *now*")
        await desk.press("enter", "enter")
        await desk.until(lambda: "Ours now" in desk.words_in("#preview"), "the preview")
        await desk.press("ctrl+s")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.sees("+ # Ours *now*")
        await desk.type("a new title")
        await desk.press("enter")
        await desk.is_told("global saved as v4.")
        await desk.until(lambda: desk.place == "boards", "the screen")
        await desk.sees("v4 · human:dana · a new title")
    row = workspace.journal.head("board", "global")
    assert row is not None
    assert (row.actor, row.message, row.version) == ("human:dana", "a new title", 4)
    assert current(workspace).startswith("# Ours *now*\n")


async def test_what_is_written_and_not_saved_stays_a_draft(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        await desk.type("Draft. ")
        await desk.press("escape")
        await desk.is_told("is kept as a draft")
        assert desk.place == "boards"
        await desk.press("q")
        await desk.until(lambda: desk.place == "ConfirmDialog", "the question whether to leave")
        await desk.press("n", "e")
        await desk.until(lambda: desk.place == "board_writing", "the editor")
        await desk.until(lambda: desk.app.screen.query_one(TextArea).text.startswith("Draft. "), "the draft")
    assert "Draft." not in current(workspace)


async def test_while_a_save_waits_for_a_lease_nothing_can_be_written_after_it(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        await desk.type("Saved. ")
        lease = workspace.boards.leases.acquire("ceo", "global", seconds=60)
        await desk.press("ctrl+s")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.sees("+ Saved.")
        await desk.type("m")
        await desk.press("enter")
        await desk.sees("saving …")
        await desk.type("lost")
        workspace.boards.leases.release(lease)
        await desk.is_told("global saved as v4.")
    assert current(workspace).startswith("Saved. # Global board")


async def test_a_draft_is_marked_and_can_be_thrown_away(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        assert not desk.shows("drop draft")
        await opens_editor(desk)
        await desk.type("Draft. ")
        await desk.press("escape")
        await desk.sees("✐", "drop draft")
        await desk.press("x", "y")
        await desk.sees_no("✐")
        await opens_editor(desk)
        assert not desk.app.screen.query_one(BoardTextArea).source.startswith("Draft.")


async def test_saving_settles_no_conflict_that_was_not_shown(workspace: Workspace, root: Path) -> None:
    (root / "global-whiteboard.md").write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        await desk.type("Mine. ")
        await desk.press("ctrl+s")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.sees("+ Mine.")
        await desk.type("m")
        await desk.press("enter")
        await desk.is_told("global saved as v4.")
        await desk.sees("⚔", "1 need you")


async def test_a_collision_opens_the_merge_and_nothing_is_lost(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        await desk.type("Dana was here. ")
        ok(workspace.tools("anna"), "whiteboard_append", board="global", content="Meanwhile.")
        await desk.sees("⚠ v4 by anna meanwhile")
        await desk.press("ctrl+s")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.sees("+ Dana was here.")
        await desk.type("mine")
        await desk.press("enter")
        await desk.until(lambda: desk.place == "merge", "the merge")
        await desk.sees("Dana was here. # Global board")
        await desk.press("w")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.press("enter")
        await desk.until(lambda: desk.place == "boards", "the screen")
        await desk.sees("v5 · human:dana")
    text = current(workspace)
    assert text.startswith("Dana was here. # Global board")
    assert text.endswith("Meanwhile.\n")


async def test_a_very_long_board_is_edited_by_the_section_that_is_looked_at(workspace: Workspace) -> None:
    long = "# Long\n\n## First\n\nshort\n\n## Second\n\n" + "Some words in a line.\n" * 20_000
    ok(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content=long,
        message="m",
        expected_version=3,
    )
    async with dashboard(workspace) as desk:
        await to_boards(desk, "Some words")
        # From its top, where all of it is one section.
        await desk.press("enter", "e")
        await desk.until(lambda: desk.place == "board_writing", "the editor")
        await desk.sees("global > First")
        await desk.press("down")
        await desk.type("Very ")
        await desk.press("ctrl+s")
        await desk.until(lambda: desk.place == "CommitDialog", "the question why")
        await desk.sees("+ Very short")
        await desk.type("m")
        await desk.press("enter")
        await desk.is_told("saved as v5")
    assert current(workspace) == long.replace("short", "Very short")


async def test_the_preview_shows_where_it_is_written(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        await opens_editor(desk)
        await desk.until(lambda: "Task overview" in desk.words_in("#preview"), "the beginning")
        assert "Update log" not in desk.words_in("#preview")
        await desk.press(*["pagedown"] * 4)
        await desk.until(lambda: "Update log" in desk.words_in("#preview"), "the end")


async def test_a_quick_key_edits_the_board_that_the_cursor_has_just_come_to(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await to_boards(desk)
        boards = desk.list("boards")
        boards.move_to("bottom-layer-ada")
        await opens_editor(desk)
        await desk.sees("bottom-layer-ada  v1")
