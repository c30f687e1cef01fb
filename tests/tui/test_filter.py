"""The filter of a list: works as it is typed, and leaves the cursor on its item."""

from __future__ import annotations

from tui.driving import Desk, dashboard
from tui.team import PLAN
from watchroom import Workspace
from watchroom_tui.theme import DARK


async def test_a_filter_works_as_you_type_enter_keeps_it_and_esc_clears_it(
    workspace: Workspace, conflict: int
) -> None:
    def shown(desk: Desk) -> list[str]:
        return [file.path for file in desk.list("shared").items]

    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        assert shown(desk) == ["another.md", PLAN, "zoo.md"]
        await desk.press("slash", "o")
        assert shown(desk) == ["another.md", "zoo.md"]
        await desk.press("o")
        assert shown(desk) == ["zoo.md"]
        await desk.sees("/oo▏ · 1 shown")
        await desk.press("backspace", "enter")
        assert shown(desk) == ["another.md", "zoo.md"]
        await desk.sees("/o · 2 shown")
        await desk.press("escape")
        assert shown(desk) == ["another.md", PLAN, "zoo.md"]
        assert desk.place == "files"


async def test_the_cursor_stays_on_its_item_when_a_filter_is_cleared(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("slash", "o", "enter", "down", "escape")
        await desk.until(lambda: len(desk.list("shared").items) == 3, "all files")
        assert desk.cursor("shared").path == "zoo.md"


async def test_what_is_typed_into_a_filter_does_nothing_else(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("slash", *"q1jgyrt?!")
        assert desk.place == "files"
        assert desk.app.theme == DARK
        await desk.sees("/q1jgyrt?!▏ · 0 shown", "Nothing here matches 'q1jgyrt?!'")
        await desk.press("escape")
        assert len(desk.list("shared").items) == 3
