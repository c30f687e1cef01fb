"""Editing a board: live preview, drafts, and concurrent writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok
from team_boards import TEAM, current, fill
from textual.widgets import TextArea
from tui.board_steps import opens_editor, to_boards
from tui.driver import dashboard
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext
from watchroom_tui.screens.boards.text_area import BoardTextArea


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=TEAM) as opened:
        fill(opened)
        yield opened


async def test_a_board_is_written_with_a_live_preview(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        source = user.app.screen.query_one(BoardTextArea)
        await user.until(lambda: source.has_focus, "the cursor in it")
        await user.type("# Ours *now*")
        await user.press("enter", "enter")
        await user.until(lambda: "Ours now" in user.words_in("#preview"), "the preview")
        await user.press("ctrl+s")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.sees("+ # Ours *now*")
        await user.press_at_once(*"a new title", "enter")
        await user.is_told("global saved as v4.")
        await user.until(lambda: user.place == "boards", "the screen")
        await user.sees("v4 · human:dana · a new title")
    row = workspace.journal.head("board", "global")
    assert row is not None
    assert (row.actor, row.message, row.version) == ("human:dana", "a new title", 4)
    assert current(workspace).startswith("# Ours *now*\n")


async def test_what_is_written_and_not_saved_stays_a_draft(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.type("Draft. ")
        await user.press("escape")
        await user.is_told("is kept.")
        assert user.place == "boards"
        await user.press("q")
        await user.until(lambda: user.place == "ConfirmDialog", "the question whether to leave")
        await user.press("escape", "e")
        await user.until(lambda: user.place == "board_writing", "the editor")
        await user.until(lambda: user.app.screen.query_one(TextArea).text.startswith("Draft. "), "the draft")
    assert "Draft." not in current(workspace)


async def test_while_a_save_waits_for_a_lease_nothing_can_be_written_after_it(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.type("Saved. ")
        lease = workspace.boards.locks.acquire(CallContext("ceo"), "global", seconds=60)
        await user.press("ctrl+s")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.sees("+ Saved.")
        await user.type("m")
        await user.press("enter")
        await user.sees("saving …")
        await user.type("lost")
        workspace.boards.locks.release(lease)
        await user.is_told("global saved as v4.")
    assert current(workspace).startswith("Saved. # Global board")


async def test_a_draft_is_marked_and_can_be_thrown_away(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.type("Draft. ")
        await user.press("escape")
        await user.sees("✐")
        await user.chooses("drop_draft")
        await user.press("enter")
        await user.sees_no("✐")
        await opens_editor(user)
        assert not user.app.screen.query_one(BoardTextArea).source.startswith("Draft.")


async def test_saving_settles_no_conflict_that_was_not_shown(workspace: Workspace, root: Path) -> None:
    (root / "global-whiteboard.md").write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.type("Mine. ")
        await user.press("ctrl+s")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.sees("+ Mine.")
        await user.type("m")
        await user.press("enter")
        await user.is_told("global saved as v4.")
        await user.sees("⚔", "1 needs you")


async def test_a_collision_opens_the_merge_and_nothing_is_lost(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.type("Dana was here. ")
        ok(workspace.tools("anna"), "whiteboard_append", board="global", content="Meanwhile.")
        await user.sees("⚠ anna saved v4")
        await user.press("ctrl+s")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.sees("+ Dana was here.")
        await user.type("mine")
        await user.press("enter")
        await user.until(lambda: user.place == "merge", "the merge")
        await user.sees("Dana was here. # Global board")
        await user.press("w")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.press("enter")
        await user.until(lambda: user.place == "boards", "the screen")
        await user.sees("v5 · human:dana")
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
    async with dashboard(workspace) as user:
        await to_boards(user, "Some words")
        # From the top, where the whole board is one section.
        await user.press("enter", "e")
        await user.until(lambda: user.place == "board_writing", "the editor")
        await user.sees("global > First")
        await user.press("down")
        await user.type("Very ")
        await user.press("ctrl+s")
        await user.until(lambda: user.place == "CommitDialog", "the question why")
        await user.sees("+ Very short")
        await user.type("shorter is better")
        await user.press("enter")
        await user.is_told("saved as v5")
    row = workspace.journal.head("board", "global")
    assert row is not None
    assert row.message == "shorter is better"
    assert current(workspace) == long.replace("short", "Very short")


async def test_the_preview_shows_where_it_is_written(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await opens_editor(user)
        await user.until(lambda: "Task overview" in user.words_in("#preview"), "the beginning")
        assert "Update log" not in user.words_in("#preview")
        await user.press(*["pagedown"] * 4)
        await user.until(lambda: "Update log" in user.words_in("#preview"), "the end")


async def test_a_quick_key_edits_the_board_that_the_cursor_has_just_come_to(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        boards = user.list("boards")
        boards.move_to("bottom-layer-ada")
        await opens_editor(user)
        await user.sees("bottom-layer-ada  v1")
