"""Narrow screens show one pane at a time, with all actions of a wide one."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from documents import create, edit
from textual.geometry import Offset
from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard
from tui.pictures import SIZES
from tui.societies import works
from tui.team import PLAN, deliver, opens_merge, write
from watchroom import Toolbox, Workspace
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext
from watchroom_tui.keys.actions import SCREENS

STACKED = ("handoffs", "agents", "requests", "tasks")
"""Screens that show several panes, one above the other."""


async def test_below_100_columns_one_pane_shows_and_tabs_name_the_others(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("4", "files")
        assert user.shown_panes() == ["shared"]
        await user.sees("Shared files 3", "Versions 1", "Changes")
        await user.press("tab")
        assert user.shown_panes() == ["versions"]
        tabs = user.lines()[1]
        await user.pilot.click(offset=(tabs.index("Changes"), 1))
        await user.until(lambda: user.shown_panes() == ["diff"], "the changes")
        assert user.pane == "diff"


async def test_one_pane_offers_no_other(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("8", "activity")
        await user.sees("Activity 8")
        assert not user.shows("tab ⇄")


@pytest.mark.parametrize("size", SIZES)
async def test_the_overview_shows_needs_above_agents_above_activity_without_tabs(
    workspace: Workspace, conflict: int, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        assert user.shown_panes() == ["needs", "agents", "activity"]
        assert not user.shows("tab ⇄")
        needs, agents, activity = (user.list(pane) for pane in ("needs", "agents", "activity"))
        await user.until(lambda: (needs.size.height, agents.size.height) == (1, 3), "as high as they hold")
        assert activity.region.bottom == size[1] - 1
        assert needs.region.y < activity.region.y
        assert agents.region.y == (needs.region.y if size == WIDE else needs.region.bottom)


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
        "agents": ["● alice", "No session yet", "a.md", "the preview", "hand over"],
        "handoffs": ["about one.md", "the delivery"],
        "files": [PLAN, "●─ v1", "1  another"],
        "documents": ["doc1", "the text"],
        "boards": ["global", "Global board", "☑ all"],
        "requests": ["Requests of agents", "Select a request"],
        "activity": ["hand over"],
        "tasks": [
            "Build a calculator.",
            "╰ ada",
            "May I go on?",
            "README.md",
            "# Calculator",
            "Commands of agents",
            "Select a command",
        ],
        "usage": ["No usage yet", "By model"],
    }
    async with dashboard(workspace, size=NARROW) as user:
        for key, screen in SCREENS:
            if screen == "overview":
                continue
            await user.goes_to(key, screen)
            for text in wanted[screen]:
                await user.sees(text)
                assert len(user.shown_panes()) == 1 or screen in STACKED
                assert user.pane in user.shown_panes()
                await user.press("tab")


@pytest.mark.parametrize("place", ["3 handoffs", "5 documents", "7 requests"])
async def test_an_empty_screen_offers_only_keys_that_do_something(workspace: Workspace, place: str) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to(*place.split())
        await user.sees("esc back")
        footer = user.lines()[-1]
        for label in ("open", "filter", "session", "play", "approve", "reject"):
            assert label not in footer
        await user.press("enter")
        await user.is_told("not possible for the selected item")


async def test_needs_that_do_not_fit_are_counted(workspace: Workspace) -> None:
    for step in range(1, 13):
        workspace.requests.ask(CallContext("alice"), f"alice/mcp/{step}", Request("prompt", f"Which {step}?"))
    async with dashboard(workspace, size=NARROW) as user:
        await user.sees("12 need you", "7 more")
        await user.press("G")
        await user.sees_no(" more ")
        activity = user.list("activity")
        assert activity.size.height >= 6


async def test_a_narrow_footer_names_the_screens_that_fit(workspace: Workspace) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("7", "requests")
        await user.sees("1Over 2Agent 3Hand 4File 5Doc 6Board 7Req 8Act 9Task 0Use │ esc back")


async def test_at_80_by_24_a_conflict_is_found_seen_and_rolled_back(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await opens_merge(user)
        await user.press("escape")
        await user.sees("├◌ ✗")
        await user.press("enter")
        await user.sees("+ late")
        await user.until(lambda: user.pane == "diff", "the keys in the changes")
        await user.press("shift+tab")
        await user.until(lambda: user.pane == "versions", "the keys in the versions")
        await user.press("down", "R")
        await user.is_asked("back to version 2?")
        await user.press("enter")
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
        write(alice, f"{n}\n", n)
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("tab")
        await user.until(lambda: user.cursor("versions"), "the versions")
        await user.press(*["down"] * 30)
        item = user.cursor("versions")
        for size in (NARROW, MIDDLE):
            await user.pilot.resize_terminal(*size)
            await user.until(lambda size=size: user.app.size == size, str(size))  # type: ignore[misc]
            await user.until(
                lambda size=size: len(user.shown_panes()) == (1 if size == NARROW else 3),  # type: ignore[misc]
                "the panes for that width",
            )
            assert user.pane == "versions"
            assert user.cursor("versions") == item
            await user.until(lambda: user.shows(f"v{item.version} "), "the line of the cursor")


async def test_a_pane_that_was_clicked_is_the_one_that_stays_when_the_screen_gets_narrow(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.pilot.click(user.list("versions"), offset=Offset(3, 2))
        assert user.pane == "versions"
        await user.pilot.resize_terminal(*NARROW)
        await user.until(lambda: len(user.shown_panes()) == 1, "one pane")
        assert user.shown_panes() == ["versions"]
        assert user.pane == "versions"
