"""Panes: tab cycles through them, enter opens the item under the cursor, and esc goes back."""

from __future__ import annotations

from calls import ok
from textual.events import Resize
from tui.driver import User, dashboard
from tui.team import collide, opens_merge
from watchroom import Toolbox, Workspace
from watchroom_tui.keys.actions import SCREENS


async def test_tab_goes_through_the_panes_in_reading_order_and_shift_tab_back(
    workspace: Workspace,
) -> None:
    orders = {
        "overview": ["needs", "agents", "activity"],
        "agents": ["agents", "session", "files", "preview", "rows"],
        "handoffs": ["deliveries", "content"],
        "files": ["shared", "versions", "diff"],
        "documents": ["documents", "document"],
        "boards": ["boards", "board", "summary"],
        "requests": ["requests", "request"],
        "activity": ["rows"],
        "tasks": ["tasks", "members", "messages", "files", "preview", "commands", "output"],
        "usage": ["by-agent", "by-model"],
    }
    async with dashboard(workspace) as user:
        for key, screen in SCREENS:
            if screen != "overview":
                await user.goes_to(key, screen)
            seen = []
            for _ in orders[screen]:
                seen.append(user.pane)
                await user.press("tab")
            assert seen == orders[screen]
            assert user.pane == orders[screen][0]
            await user.press("shift+tab")
            assert user.pane == orders[screen][-1]


async def test_esc_goes_back_to_the_screen_before_with_its_cursor_where_it_was(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(60):
        ok(alice, "save_to_my_workspace", filename=f"n{n}.md", content="x")
    async with dashboard(workspace) as user:
        await user.press("tab", "tab", *["down"] * 40)
        item, top = user.cursor("activity"), user.list("activity").scroll_offset.y
        assert top > 0
        await user.goes_to("4", "files")
        await user.goes_to("3", "handoffs")
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")
        assert user.pane == "activity"
        assert user.cursor("activity") == item
        assert user.list("activity").scroll_offset.y == top
        await user.press("escape")
        assert user.place == "overview", "there is nowhere further back"


async def test_enter_on_a_row_shows_it_whole_and_esc_closes_it(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="the content itself", message="the message")
    async with dashboard(workspace) as user:
        await user.press("tab", "tab", "enter")
        await user.until(lambda: user.place == "RowDialog", "the row")
        await user.sees("save_to_my_workspace", "alice/a.md", "the message", "the content itself", "sha-256")
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")
        assert user.pane == "activity"


async def _leaves_amid_a_resize(user: User) -> None:
    """Resize the terminal, and close the screen before it is drawn again."""
    screen = user.app.screen
    screen.post_message(Resize(screen.size, screen.size))
    await user.app.pop_screen()
    await user.settle()
    assert user.app.is_running, "the dashboard goes on"


async def test_a_merge_that_is_left_amid_a_resize_ends_nothing(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await _leaves_amid_a_resize(user)
        await opens_merge(user)
