"""The boards screen: the layers, the board in the preview, its summary, and editing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok, refused
from team_boards import TEAM, current, fill
from tui.board_steps import to_boards
from tui.driver import NARROW, User, dashboard, past
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext
from watchroom_tui.screens.boards.summary_panel import BoardPanel


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=TEAM) as opened:
        fill(opened)
        yield opened


def summary(user: User) -> list[tuple[str, str]]:
    rows = user.app.screen.query_one(BoardPanel).items
    return [(row.item.kind, row.item.text) for row in rows if not row.item.is_heading and not row.number]


def names(user: User) -> list[str]:
    return [item.name for item in user.list("boards").items]


async def test_the_layers_are_a_tree_with_owners_versions_and_what_is_not_written(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        assert names(user) == [
            "global",
            "top-layer",
            "mid-layer-architect",
            "bottom-layer-ada",
            "bottom-layer-zoe",
        ]
        await user.sees("├ top layer", "│ ╰ architect", "│   ╰ ada", "╰ zoe", "v3", "–")
        assert [item.owners for item in user.list("boards").items] == [
            (),
            ("ceo",),
            ("anna",),
            ("ada",),
            ("zoe",),
        ]


async def test_the_board_under_the_cursor_is_rendered_and_follows_what_agents_write(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees("global  v3 · anna")
        assert not user.shows("## Task overview")
        await user.press("down", "down", "down")
        await user.sees("Clean the data")
        ok(
            workspace.tools("ada"),
            "whiteboard_append",
            board="bottom-layer-ada",
            content="**Halfway** there.",
        )
        await user.sees("v2 · ada")
        await user.press("enter", "G")
        await user.sees("Halfway there.")


async def test_a_board_that_nobody_wrote_says_so_and_starts_from_its_template(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.press("G")
        await user.sees("not written yet", "e starts it from its")
        await user.sees_no("reading …")
        await user.press("o")
        await user.is_told("outline: this board has no text yet")
        await user.press("e")
        await user.sees("Bottom layer - helper")
        assert workspace.journal.head("board", "bottom-layer-zoe") is None


async def test_the_panel_shows_progress_and_leads_to_the_items(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees("Milestones 3", "67 %", "☑ Outline agreed", "☐ First draft reviewed", "✓ #1 Publish")
        assert ("decision", "#1 Publish in two parts") in summary(user)
        assert not any("#2" in text for kind, text in summary(user) if kind == "decision"), "its time is none"
        (problem,) = [text for kind, text in summary(user) if kind == "problem"]
        assert "yesterday" in problem
        assert ("log", "Twelve sources are in.") in summary(user)
        await user.sees("yesterday")
        panel = user.app.screen.query_one(BoardPanel)
        panel.move_to(("log", "Twelve sources are in.", "anna", False, 0))
        panel.focus()
        await user.press("enter")
        await user.until(lambda: user.pane == "board", "the board")
        await user.sees("▪ Update")


async def test_the_panel_follows_the_board(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees("67 %")
        ok(
            workspace.tools("ceo"),
            "whiteboard_update_section",
            board="global",
            section="Milestones",
            content="- [x] All",
        )
        await user.sees("100 %")


async def test_a_boards_holder_is_shown_until_the_lock_ends(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        leases = workspace.boards.locks
        lease = leases.acquire(CallContext("ceo"), "top-layer", seconds=60)
        await user.sees("✎ ceo")
        leases.release(lease)
        await user.sees_no("✎ ceo")


async def test_news_on_other_boards_is_marked_until_it_is_read(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        ok(workspace.tools("ceo"), "whiteboard_append", board="top-layer", content="Notifications.")
        await user.sees("● ├ top layer")
        await user.press("down", "up")
        await user.sees_no("● ├ top layer")


async def test_words_are_found_and_gone_to(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.press("enter", "slash")
        await user.type("twelve")
        await user.sees("/twelve · 1 found", "Twelve sources are in.")
        await user.press("enter")
        await user.sees("/twelve · 1 found")
        await user.press("escape")
        await user.sees_no("/twelve")


async def test_headings_are_chosen_from_the_outline(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.press("enter", "o")
        await user.until(lambda: user.place == "OutlineDialog", "the outline")
        outline = user.list("outline")
        await user.until(lambda: len(outline.items) > 8, "the headings")
        assert [item.title for item in outline.items][:3] == [
            "Global board - {taskName}",
            "Task overview",
            "Core goals",
        ]
        await user.press("G", "enter")
        await user.until(lambda: user.place == "boards", "the screen")
        await user.sees("Twelve sources are in.")


async def test_an_external_edit_of_an_unwritten_board_is_marked_and_settled(
    workspace: Workspace, root: Path
) -> None:
    (root / "whiteboards/top-layer.md").write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees("⚔")
        await user.press("down", "M")
        await user.until(lambda: user.place == "merge", "the merge")
        await user.sees("By hand.")


async def test_an_expired_lock_disappears(workspace: Workspace) -> None:
    workspace.boards.locks.acquire(CallContext("ceo"), "top-layer", seconds=1.5)
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees_no("✎ ceo")


async def test_a_conflict_of_an_agent_is_settled_from_here(workspace: Workspace) -> None:
    result = refused(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content="# Mine\n",
        message="m",
        expected_version=1,
    )
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.sees("⚔")
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "merge", "the merge")
        await user.sees("incoming · ceo")
        await user.press("D")
        await user.until(lambda: user.place == "ConfirmDialog", "the question")
        await user.press("enter")
        await user.until(lambda: user.place == "boards", "the screen")
        await user.sees_no("⚔")
    (row,) = [row for row in workspace.journal.rows() if row.tool == "dismiss_conflict"]
    assert (row.zone, row.path, row.detail["conflict"]) == ("board", "global", result["conflict_id"])


async def test_an_edit_by_hand_is_settled_from_here(workspace: Workspace, root: Path) -> None:
    file = root / "global-whiteboard.md"
    file.write_text("By hand.\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await to_boards(user)
        await user.press("M")
        await user.until(lambda: user.place == "merge", "the merge")
        await user.sees("By hand.")
        await user.press("R")
        await user.until(lambda: user.place == "ConfirmDialog", "the question")
        await user.press("enter")
        await user.until(lambda: user.place == "boards", "the screen")
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
    async with dashboard(workspace) as user:
        await to_boards(user, "Gone")
        await user.press("v")
        await user.until(lambda: user.place == "board_versions", "the versions")
        await user.sees("oops", "− # Global board")
        await user.press("down")
        await user.sees("+ Twelve sources are in.")
        await user.press("R")
        await user.until(lambda: user.place == "RestoreDialog", "the question")
        await user.is_asked("version 3")
        await user.press("enter")
        await user.until(lambda: user.place == "board_versions", "the versions")
        await user.sees("v5")
    assert current(workspace) == before


async def test_the_past_shows_boards_as_they_were_and_offers_no_acts(workspace: Workspace) -> None:
    first = workspace.journal.history("board", "global")[0]
    async with past(workspace.journal, first.seq) as user:
        await user.goes_to("6", "boards")
        await user.sees("global  v1", "67 %")
        assert not user.shows(" e edit")
        await user.press("e")
        await user.is_told("the past")
        assert user.place == "boards"


async def test_texts_on_boards_are_neither_markup_nor_escape_sequences(workspace: Workspace) -> None:
    evil = "# [@click=app.quit]x[/]\n\n\x1b]0;owned\x07 &#8238;abc <b>bold</b> [/nothing]\n"
    ok(
        workspace.tools("ceo"),
        "whiteboard_write",
        board="global",
        content=evil,
        message="\x1b[31m",
        expected_version=3,
    )
    async with dashboard(workspace) as user:
        await to_boards(user, "[@click=app.quit]x[/]")
        await user.sees("<b>bold</b>", "[/nothing]")
        assert not any("\x1b" in line or "\u202e" in line for line in user.lines())


async def test_at_80_columns_the_panes_are_tabs(workspace: Workspace) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("6", "boards")
        await user.sees("top layer")
        assert user.shown_panes() == ["boards"]
        await user.press("enter")
        await user.sees("Task overview")
        assert user.shown_panes() == ["board"]
        await user.press("tab")
        await user.sees("☑ Outline agreed")
        assert user.shown_panes() == ["summary"]
