"""Panes: tab goes through them, enter opens what is under the cursor, and esc leads back."""

from __future__ import annotations

from calls import ok
from tui.driving import dashboard
from watchroom import Toolbox, Workspace
from watchroom_tui.actions import SCREENS


async def test_tab_goes_through_the_panes_in_reading_order_and_shift_tab_back(
    workspace: Workspace,
) -> None:
    orders = {
        "overview": ["agents", "needs", "activity"],
        "agents": ["agents", "files", "session", "preview", "rows"],
        "handoffs": ["deliveries", "matrix", "content"],
        "files": ["shared", "versions", "diff"],
        "documents": ["documents", "document"],
        "boards": ["boards", "board", "summary"],
        "requests": ["requests", "request"],
        "activity": ["rows"],
        "tasks": ["tasks", "members", "files", "preview", "messages", "commands", "output"],
    }
    async with dashboard(workspace) as desk:
        for key, screen in SCREENS:
            if screen != "overview":
                await desk.goes_to(key, screen)
            seen = []
            for _ in orders[screen]:
                seen.append(desk.pane)
                await desk.press("tab")
            assert seen == orders[screen]
            assert desk.pane == orders[screen][0]
            await desk.press("shift+tab")
            assert desk.pane == orders[screen][-1]


async def test_esc_goes_back_to_the_screen_before_with_its_cursor_where_it_was(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(60):
        ok(alice, "save_to_my_workspace", filename=f"n{n}.md", content="x")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", *["down"] * 40)
        item, top = desk.cursor("activity"), desk.list("activity").scroll_offset.y
        assert top > 0
        await desk.goes_to("4", "files")
        await desk.goes_to("3", "handoffs")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "overview", "the overview")
        assert desk.pane == "activity"
        assert desk.cursor("activity") == item
        assert desk.list("activity").scroll_offset.y == top
        await desk.press("escape")
        assert desk.place == "overview", "there is nowhere further back"


async def test_enter_on_a_row_shows_it_whole_and_esc_closes_it(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="the content itself", message="the message")
    async with dashboard(workspace) as desk:
        await desk.press("tab", "tab", "enter")
        await desk.until(lambda: desk.place == "RowDialog", "the row")
        await desk.sees("save_to_my_workspace", "alice/a.md", "the message", "the content itself", "sha-256")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "overview", "the overview")
        assert desk.pane == "activity"
