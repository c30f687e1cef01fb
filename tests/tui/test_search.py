"""Search and copy in texts of every kind, filters of lists, and the mouse."""

from __future__ import annotations

import pytest
from calls import ok
from textual import events
from textual.keys import _character_to_key
from tui.driver import User, dashboard
from tui.sessions import running, says
from tui.team import write
from watchroom import Toolbox, Workspace

HOSTILE = "tic [/b] [@click=app.quit] \x1b]0;x\x07 \u202etac .* 港口 "


async def opens_preview(user: User, workspace: Workspace) -> None:
    await user.goes_to("2", "agents")
    await user.until(lambda: user.list("agents").items, "the agents")
    while user.cursor("agents").agent.id != "alice":
        await user.press("down")
    await user.until(lambda: user.list("files").items, "the files")
    user.app.screen.query_one("#preview").focus()
    await user.until(lambda: user.text("preview").copied_text()[1] > 2, "the text")


@pytest.mark.parametrize("words", ["[/b]", "[@click=app.quit]", ".*", "港口", "TIC", "‹RO+202E›"])
async def test_words_are_found_as_they_are_written(workspace: Workspace, alice: Toolbox, words: str) -> None:
    ok(alice, "save_to_my_workspace", filename="a.txt", content=f"one\n{HOSTILE}\ntwo\n{HOSTILE}\n")
    async with dashboard(workspace) as user:
        await opens_preview(user, workspace)
        await user.press("slash")
        await user.paste(words)
        await user.until(lambda: "2 found" in str(user.text("preview").border_subtitle), "both")
        await user.press("enter")
        assert user.pane == "preview"
        await user.press("escape")
        assert user.text("preview").border_subtitle is None
        assert user.place == "agents"


async def test_n_and_P_go_round_all_matches_of_a_long_text(workspace: Workspace, alice: Toolbox) -> None:
    lines = [f"line {n}" + (" needle" if n in (200, 3000, 4500) else "") for n in range(5000)]
    ok(alice, "save_to_my_workspace", filename="a.txt", content="\n".join(lines))
    async with dashboard(workspace) as user:
        await opens_preview(user, workspace)
        await user.press("slash", *"needle", "enter")
        await user.sees("line 200 needle", "/needle · 3 found")
        for key, line in (("n", 3000), ("n", 4500), ("n", 200), ("P", 4500), ("P", 3000)):
            await user.press(key)
            await user.sees(f"line {line} needle")


async def test_keys_typed_right_after_a_slash_belong_to_the_search(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        driver = user.app._driver
        assert driver is not None
        for character in "/zoo1q":
            event = events.Key(_character_to_key(character), character)
            event.set_sender(user.app)
            driver.send_message(event)
        await user.until(lambda: user.list("shared").sought == "zoo1q", "all that was typed")
        assert user.place == "files"


async def test_a_filter_takes_a_paste_and_is_edited_with_the_cursor_keys(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("slash")
        await user.paste("oo\nnot this")
        await user.press("home", "z", "enter")
        assert [file.path for file in user.list("shared").items] == ["zoo.md"]
        assert user.pane == "shared"
        await user.press("slash", "end", "backspace", "backspace", "backspace")
        assert len(user.list("shared").items) == 3


async def test_tab_keeps_a_filter_and_goes_to_the_next_pane(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("slash", "z", "tab")
        assert user.pane == "versions"
        assert [file.path for file in user.list("shared").items] == ["zoo.md"]
        await user.until(lambda: user.lines()[-1].startswith(" 1"), "the footer of the screen")


async def test_help_is_searched(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        await user.press("slash", *"quit", "enter")
        await user.sees("/quit · ")
        await user.press("escape")
        assert user.place == "HelpDialog"
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")


async def test_a_difference_is_searched_and_copied_with_its_signs(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "same\n\told port\n", 0)
    write(alice, "same\n\tnew port\n", 1)
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("d")
        await user.sees("+ →   new port")
        user.app.screen.query_one("#diff").focus()
        await user.press("slash", *"PORT", "enter")
        await user.sees("/PORT · 2 found")
        await user.press("y")
        assert user.app.clipboard.splitlines()[-3:] == [" same", "−\told port", "+\tnew port"]
        await user.is_told("Copied 4 lines.")


async def test_a_transcript_is_searched_from_row_to_row_and_its_row_copied(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "alice", says("first word\nnothing\nlast word"), task="Talk.") as alice,
    ):
        await alice.ended()
        await user.goes_to("2", "agents")
        await user.sees("last word")
        user.app.screen.query_one("#session").focus()
        await user.press("g", "slash", *"word", "enter")
        await user.sees("/word · 2 found")
        await user.press("y")
        assert user.app.clipboard == "first word"
        await user.press("n", "y")
        assert user.app.clipboard == "last word"


async def test_only_the_beginning_of_a_very_long_text_is_copied(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.txt", content="123456789\n" * 20_000)
    async with dashboard(workspace) as user:
        await opens_preview(user, workspace)
        await user.press("y")
        assert len(user.app.clipboard) == 100_000
        await user.is_told("Copied the first 10000 of 20001 lines")


async def test_the_wheel_scrolls_what_is_beneath_the_pointer(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="a.txt", content="\n".join(f"line {n}" for n in range(200)))
    async with dashboard(workspace) as user:
        await opens_preview(user, workspace)
        user.list("agents").focus()
        await user.settle()
        await user.pilot._post_mouse_events([events.MouseScrollDown], "#preview", offset=(5, 5))
        await user.until(lambda: user.text("preview").scroll_offset.y > 0, "another line at the top")
        assert user.pane == "agents"


async def test_a_click_on_the_item_under_the_cursor_opens_it(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        line = next(n for n, text in enumerate(user.lines()) if "zoo.md" in text)
        await user.pilot.click(offset=(5, line))
        await user.until(lambda: user.cursor("shared").path == "zoo.md", "zoo.md")
        assert user.pane == "shared"
        await user.press("right")
        await user.pilot.click(offset=(6, line))
        await user.until(lambda: user.pane == "diff", "the text")
