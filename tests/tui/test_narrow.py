"""Narrow screens: one pane at a time, and all can be done that a wide one can."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from documents import create, edit
from textual.geometry import Offset
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.societies import works
from tui.team import PLAN, deliver, opens_merge
from watchroom import Toolbox, Workspace
from watchroom_tui.actions import SCREENS


async def test_below_100_columns_one_pane_shows_and_tabs_name_the_others(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        assert user.shown_panes() == ["agents"]
        await user.sees("Agents 3", "Needs you 1", "Activity ")
        await user.press("tab")
        assert user.shown_panes() == ["needs"]
        await user.sees("bob ↔ alice")
        tabs = user.lines()[1]
        await user.pilot.click(offset=(tabs.index("Activity"), 1))
        await user.until(lambda: user.shown_panes() == ["activity"], "the activity")
        assert user.pane == "activity"


async def test_above_100_columns_all_panes_show_and_there_are_no_tabs(workspace: Workspace) -> None:
    async with dashboard(workspace, size=(100, 30)) as user:
        assert user.shown_panes() == ["agents", "needs", "activity"]
        assert not user.shows("tab ⇄")


async def test_every_pane_of_every_screen_can_be_reached_and_used_at_80_by_24(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int, tmp_path: Path
) -> None:
    works(workspace, tmp_path / "calculator")
    ok(alice, "save_to_my_workspace", filename="a.md", content="the preview\n")
    deliver(alice, "bob", "one.md", "the delivery")
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="the text")
    ok(
        workspace.tools_for_human("dana"),
        "whiteboard_update_section",
        board="global",
        section="Milestones",
        content="- [x] all",
    )
    wanted = {
        "overview": ["● alice", "⚔ conflict", "hand over"],
        "agents": ["● alice", "a.md", "No session yet", "the preview", "hand over"],
        "handoffs": ["about one.md", "1 ✉1", "the delivery"],
        "files": [PLAN, "●─ v1", "+ another"],
        "documents": ["doc1", "the text"],
        "boards": ["global", "Global board", "☑ all"],
        "requests": ["What agents ask of you", "Choose a request"],
        "activity": ["hand over"],
        "tasks": [
            "Build a calculator.",
            "╰ ada",
            "README.md",
            "# Calculator",
            "May I go on?",
            "Commands that agents run",
            "Choose a command",
        ],
    }
    async with dashboard(workspace, size=NARROW) as user:
        for key, screen in SCREENS:
            if screen != "overview":
                await user.goes_to(key, screen)
            for text in wanted[screen]:
                await user.sees(text)
                assert len(user.shown_panes()) == 1
                assert user.pane == user.shown_panes()[0]
                await user.press("tab")


async def test_at_80_by_24_a_conflict_is_found_seen_and_rolled_back(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await opens_merge(user)
        await user.press("escape")
        await user.sees("│╰◌✗")
        await user.press("enter")
        await user.sees("+ late")
        await user.until(lambda: user.pane == "diff", "the keys in the changes")
        await user.press("shift+tab")
        await user.until(lambda: user.pane == "versions", "the keys in the versions")
        await user.press("down", "r")
        await user.is_asked("back to version 2?")
        await user.press("y")
        await user.until(lambda: not workspace_needs(user), "nothing open any more")


def workspace_needs(user: User) -> list[str]:
    return [need.kind for need in user.model.needs]


async def test_the_tabs_count_what_the_panes_hold_now(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: len(user.list("versions").items) == 1, "the versions of another.md")
        await user.sees("Versions 1")


async def test_resizing_to_80_columns_and_back_keeps_focus_and_cursor(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(50):
        ok(alice, "save_to_my_workspace", filename=f"n{n}.md", content="x")
    async with dashboard(workspace) as user:
        await user.press("tab", "tab", *["down"] * 30)
        item = user.cursor("activity")
        for size in (NARROW, MIDDLE):
            await user.pilot.resize_terminal(*size)
            await user.until(lambda size=size: user.app.size == size, str(size))  # type: ignore[misc]
            await user.until(
                lambda size=size: len(user.shown_panes()) == (1 if size == NARROW else 3),  # type: ignore[misc]
                "the panes for that width",
            )
            assert user.pane == "activity"
            assert user.cursor("activity") == item
            await user.until(lambda: user.shows(item.path.removeprefix("alice/")), "the line of the cursor")


async def test_a_pane_that_was_clicked_is_the_one_that_stays_when_the_screen_gets_narrow(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        needs = user.list("needs")
        await user.pilot.click(needs, offset=Offset(3, 1))
        assert user.pane == "needs"
        await user.pilot.resize_terminal(*NARROW)
        await user.until(lambda: len(user.shown_panes()) == 1, "one pane")
        assert user.shown_panes() == ["needs"]
        assert user.pane == "needs"
