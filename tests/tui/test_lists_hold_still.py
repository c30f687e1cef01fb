"""Lists hold still under the cursor while new rows arrive."""

from __future__ import annotations

from calls import ok
from tui.driver import NARROW, dashboard, seqs
from tui.team import PLAN, write
from watchroom import Toolbox, Workspace


async def test_a_list_holds_new_items_back_while_it_is_read_and_g_shows_them(
    workspace: Workspace, alice: Toolbox
) -> None:
    for n in range(5):
        ok(alice, "save_to_my_workspace", filename=f"old{n}.md", content="x")
    async with dashboard(workspace) as user:
        await user.press("tab", "tab", "down", "down")
        before, item = seqs(user.list("activity").items), user.cursor("activity")
        for n in range(3):
            ok(alice, "save_to_my_workspace", filename=f"new{n}.md", content="x")
        await user.sees("3 new ↑")
        assert seqs(user.list("activity").items) == before
        assert user.cursor("activity") == item
        await user.press("g")
        await user.sees_no("3 new ↑")
        assert user.cursor("activity").path == "alice/new2.md"
        ok(alice, "save_to_my_workspace", filename="live-again.md", content="x")
        await user.until(lambda: user.cursor("activity").path == "alice/live-again.md", "the newest row")


async def test_other_lists_keep_the_cursor_on_its_item_while_they_change(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("down")
        assert user.cursor("shared").path == PLAN
        write(alice, "x\n", 0, "aaa.md")
        await user.until(lambda: len(user.list("shared").items) == 4, "the new file")
        assert user.cursor("shared").path == PLAN


async def test_the_end_is_shown_though_the_list_became_long_just_before(
    workspace: Workspace, alice: Toolbox
) -> None:
    """The key comes before the next layout gives the list a scrollbar."""
    ok(alice, "save_to_my_workspace", filename="notes.md", content="x")
    async with dashboard(workspace) as user:
        rows = user.list("activity")
        await user.until(lambda: rows.items, "a row")
        first = rows.items[0]
        rows.show([first._replace(seq=1000 - n, path=f"alice/{n}.md") for n in range(200)])
        rows.action_last()
        await user.sees("199.md")


async def test_a_list_that_is_not_shown_yet_does_not_scroll_away_from_its_beginning(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="x")
    async with dashboard(workspace, size=NARROW) as user:
        rows = user.list("activity")
        await user.until(lambda: rows.items, "a row")
        first = rows.items[0]
        rows.show([first._replace(seq=1000 - n, path=f"alice/{n}.md") for n in range(200)])
        rows.action_move(1)
        await user.press("tab", "tab")
        await user.sees(" 0.md", " 1.md")
