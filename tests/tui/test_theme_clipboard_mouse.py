"""Features of every screen: the other theme, copying a path, and the mouse."""

from __future__ import annotations

from tui.driver import dashboard, past
from tui.pictures import at_rest
from tui.team import PLAN
from watchroom import Workspace
from watchroom_tui.presentation.theme import DARK, LIGHT


async def test_the_palette_flips_between_dark_and_light(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        dark = user.app.screen.styles.background
        await user.chooses("theme")
        assert user.app.theme == LIGHT
        assert user.app.screen.styles.background != dark
        await user.chooses("theme")
        assert user.app.theme == DARK
        assert user.app.screen.styles.background == dark


async def test_a_screen_that_was_left_has_the_theme_that_was_chosen_meanwhile(
    workspace: Workspace, conflict: int
) -> None:
    journal = workspace.journal
    async with past(journal, journal.last_seq()) as user:
        await user.goes_to("8", "activity")
        await user.sees("zoo.md")
        dark = await at_rest(user)
        await user.goes_to("1", "overview")
        await user.chooses("theme")
        await user.goes_to("8", "activity")
        again = await at_rest(user)
    async with past(journal, journal.last_seq()) as user:
        await user.chooses("theme")
        await user.goes_to("8", "activity")
        await user.sees("zoo.md")
        assert again == await at_rest(user)
    assert again != dark


async def test_y_copies_the_path_under_the_cursor(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("down", "y")
        assert user.app.clipboard == PLAN
        await user.is_told("Copied.")


async def test_screens_keys_and_rows_can_be_clicked(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        footer = user.lines()[-1]
        await user.pilot.click(offset=(footer.index("File"), len(user.lines()) - 1))
        await user.until(lambda: user.place == "files", "the files")
        await user.sees("zoo.md")
        line = next(n for n, text in enumerate(user.lines()) if "zoo.md" in text)
        await user.pilot.click(offset=(5, line))
        await user.until(lambda: user.cursor("shared").path == "zoo.md", "zoo.md")
        await user.pilot.click(offset=(5, line), times=2)
        await user.until(lambda: user.pane == "diff", "the text")
