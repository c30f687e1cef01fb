"""The filter of a list works while it is typed, and keeps the cursor on its item."""

from __future__ import annotations

from tui.driver import User, dashboard
from tui.team import PLAN
from watchroom import Workspace
from watchroom_tui.presentation.theme import DARK


async def test_a_filter_works_as_you_type_enter_keeps_it_and_esc_clears_it(
    workspace: Workspace, conflict: int
) -> None:
    def shown(user: User) -> list[str]:
        return [file.path for file in user.list("shared").items]

    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        assert shown(user) == ["another.md", PLAN, "zoo.md"]
        await user.press("slash", "o")
        assert shown(user) == ["another.md", "zoo.md"]
        await user.press("o")
        assert shown(user) == ["zoo.md"]
        await user.sees("/oo · 1 shown")
        await user.press("backspace", "enter")
        assert shown(user) == ["another.md", "zoo.md"]
        await user.sees("/o · 2 shown")
        await user.press("escape")
        assert shown(user) == ["another.md", PLAN, "zoo.md"]
        assert user.place == "files"


async def test_the_cursor_stays_on_its_item_when_a_filter_is_cleared(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("slash", "o", "enter", "down", "escape")
        await user.until(lambda: len(user.list("shared").items) == 3, "all files")
        assert user.cursor("shared").path == "zoo.md"


async def test_what_is_typed_into_a_filter_does_nothing_else(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("slash", *"q1jgyrt?!")
        assert user.place == "files"
        assert user.app.theme == DARK
        await user.sees("/q1jgyrt?! · 0 shown", "Nothing here matches 'q1jgyrt?!'")
        await user.press("escape")
        assert len(user.list("shared").items) == 3
