"""The help and the palette: the actions of the screen that one is in."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList
from tui.driving import Desk, dashboard
from watchroom import Workspace
from watchroom_tui.actions import of_scope


async def test_help_and_rows_close_with_esc_and_with_q(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        for opening in (("question_mark",), ("G", "tab", "tab", "enter")):
            for closing_key in ("escape", "q"):
                await desk.press(*opening)
                await desk.until(lambda: desk.place != "overview", "what lies over the screen")
                await desk.press(closing_key)
                await desk.until(lambda: desk.place == "overview", "the overview")
                await desk.press("shift+tab", "shift+tab") if len(opening) > 1 else None


@pytest.mark.parametrize(("key", "screen"), [("4", "files"), ("3", "handoffs"), ("8", "activity")])
async def test_help_shows_the_keys_of_this_screen_first(workspace: Workspace, key: str, screen: str) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to(key, screen)
        await desk.press("question_mark")
        await desk.until(lambda: desk.place == "HelpDialog", "the help")
        text = "\n".join(desk.lines())
        own, everywhere = of_scope(screen)[0].help(desk.app.texts), "Everywhere"
        assert own in text
        assert text.index(own) < text.index(everywhere)
        others = {"files", "handoffs", "activity"} - {screen}
        assert not any(of_scope(other)[0].help(desk.app.texts) in text for other in others)
        await desk.press("escape")
        await desk.until(lambda: desk.place == screen, screen)


async def test_asking_for_help_twice_needs_one_esc(workspace: Workspace) -> None:
    async with dashboard(workspace) as desk:
        await desk.press("question_mark", "question_mark", "escape")
        assert desk.place == "overview"


async def test_the_palette_lists_the_actions_of_here_and_runs_them(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.press("ctrl+p")
        palette = await offered(desk)
        for action in of_scope("app", "files"):
            assert any(action.help(desk.app.texts) in each for each in palette), action.id
        assert not any("not acknowledged" in each for each in palette), "that is for the handoffs"
        await desk.type("Activity")
        await desk.until(lambda: len(options(desk)) == 1, "the one that matches")
        await desk.press("enter")
        await desk.until(lambda: desk.place == "activity", "the activity screen")


async def offered(desk: Desk) -> list[str]:
    """What the open palette offers, as text."""
    await desk.until(lambda: desk.place == "CommandPalette", "the palette")
    await desk.until(lambda: options(desk), "commands")
    return options(desk)


def options(desk: Desk) -> list[str]:
    found = desk.app.screen.query_one(OptionList)
    return [str(found.get_option_at_index(index).prompt) for index in range(found.option_count)]
