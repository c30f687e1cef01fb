"""What works in every screen: the other theme, copying a path, and the mouse."""

from __future__ import annotations

from tui.driving import dashboard
from tui.team import PLAN
from watchroom import Workspace
from watchroom_tui.theme import DARK, LIGHT


async def test_t_flips_between_dark_and_light(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        dark = desk.app.screen.styles.background
        await desk.press("t")
        assert desk.app.theme == LIGHT
        assert desk.app.screen.styles.background != dark
        await desk.press("t")
        assert desk.app.theme == DARK
        assert desk.app.screen.styles.background == dark


async def test_y_copies_the_path_under_the_cursor(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("down", "y")
        assert desk.app.clipboard == PLAN
        await desk.is_told("Copied.")


async def test_screens_keys_and_rows_can_be_clicked(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as desk:
        footer = desk.lines()[-1]
        await desk.pilot.click(offset=(footer.index("Files"), len(desk.lines()) - 1))
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.sees("zoo.md")
        line = next(n for n, text in enumerate(desk.lines()) if "zoo.md" in text)
        await desk.pilot.click(offset=(5, line))
        await desk.until(lambda: desk.cursor("shared").path == "zoo.md", "zoo.md")
        await desk.pilot.click(offset=(5, line), times=2)
        await desk.until(lambda: desk.pane == "versions", "the versions")
