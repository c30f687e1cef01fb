"""Agents' open buffers: their states, open choices, and unflushed changes."""

from __future__ import annotations

from calls import ok, refused
from tui.driver import NARROW, WIDE, User, dashboard, past
from tui.team import PLAN, write
from watchroom import Toolbox, Workspace
from watchroom_tui.screens.agents.buffers_screen import BuffersScreen

TEXT = "first foo\nsecond foo\nthird\n"


def opens(toolbox: Toolbox, text: str = TEXT) -> None:
    write(toolbox, text, 0)
    ok(toolbox, "open_buffer", source="collab", path=PLAN)


async def to_agents(user: User) -> None:
    await user.goes_to("2", "agents")
    await user.until(lambda: len(user.list("buffers").items) > 0, "the buffers")


async def to_buffers(user: User) -> None:
    """Go from the agents screen to all buffers."""
    await user.chooses("buffers")
    await user.until(lambda: isinstance(user.app.screen, BuffersScreen), "the buffers of all")


def chosen(user: User) -> str:
    """Return the path of the buffer under the cursor."""
    item = user.cursor("buffers")
    return item.path if item is not None else ""


def stands(user: User, mark: str, name: str = "plan") -> bool:
    """Return whether the list has this mark before the buffer."""
    return f"{mark} {name}" in user.words_in("#buffers")


async def test_each_agent_shows_what_it_has_open(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        assert "buffers" not in user.shown_panes()
        opens(alice)
        await user.until(lambda: "buffers" in user.shown_panes(), "the pane")
        await user.until(lambda: stands(user, "✓"), "a buffer that is as its source")
        ok(alice, "plan_append", text="more\n")
        await user.until(lambda: stands(user, "✎"), "one that is not written")
        ok(bob, "collab_write", filepath=PLAN, content="other\n", message="m", expected_version=1)
        await user.until(lambda: stands(user, "⚔"), "one whose source has moved on as well")
        ok(alice, "plan_accept_source")
        ok(bob, "collab_write", filepath=PLAN, content="again\n", message="m", expected_version=2)
        await user.until(lambda: stands(user, "↓"), "one that is behind")
        ok(alice, "plan_refresh")
        ok(alice, "close_buffer", buffer="plan")
        await user.until(lambda: "buffers" not in user.shown_panes(), "no pane")


async def test_the_state_of_a_buffer_is_shown_in_full_in_chinese(
    workspace: Workspace, alice: Toolbox
) -> None:
    opens(alice)
    async with dashboard(workspace, language="zh") as user:
        await to_agents(user)
        await user.sees("已写入")
        refused(alice, "plan_replace", old_text="foo", new_text="bar")
        await user.sees("待选择")
        assert "替换 ✎ plan" in user.words_in("#agents")


async def test_the_places_that_wait_for_a_choice_are_marked(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice)
    refused(alice, "plan_replace", old_text="foo", new_text="bar")
    async with dashboard(workspace, size=WIDE) as user:
        await to_agents(user)
        await user.sees("first [[SEL#1]]foo[[/SEL#1]]", "second [[SEL#2]]foo[[/SEL#2]]")
        await user.sees("“foo” occurs in 2 places, to be replaced by “bar”")
        assert stands(user, "◐")
        marked = [span for span in user.spans("preview") if span.style == "match-here"]
        assert [span.text for span in marked] == ["[[SEL#1]]foo[[/SEL#1]]", "[[SEL#2]]foo[[/SEL#2]]"]
        ok(alice, "plan_replace_selection", selection_id=2)
        await user.sees_no("[[SEL#1]]")
        await user.sees("+ second bar")


async def test_marks_in_a_buffers_own_text_are_not_choices(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice, "a [[SEL#1]]foo[[/SEL#1]]\nb foo\n")
    refused(alice, "plan_replace", old_text="foo", new_text="bar")
    async with dashboard(workspace, size=WIDE) as user:
        await to_agents(user)
        await user.sees("a [[SEL#1]][[SEL2#1]]foo[[/SEL2#1]][[/SEL#1]]")
        marked = [span for span in user.spans("preview") if span.style == "match-here"]
        assert [span.text for span in marked] == ["[[SEL2#1]]foo[[/SEL2#1]]", "[[SEL2#2]]foo[[/SEL2#2]]"]


async def test_all_buffers_are_shown_with_text_and_unflushed_changes(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    opens(alice)
    ok(bob, "open_buffer", source="collab", path=PLAN, name="review")
    ok(bob, "review_replace", old_text="third", new_text="3rd")
    async with dashboard(workspace) as user:
        await to_agents(user)
        await to_buffers(user)
        await user.sees("✓ alice", "✎ bob", "No changes: the buffer equals its source.")
        await user.press("down")
        await user.sees("− third", "+ 3rd")
        await user.until(lambda: "3rd" in user.words_in("#buffer"), "its text")
        assert "third" not in user.words_in("#buffer")
        ok(bob, "review_flush")
        await user.sees("✓ bob", "No changes: the buffer equals its source.")
        ok(bob, "close_buffer", buffer="review")
        await user.until(lambda: len(user.list("buffers").items) == 1, "the one that is left")
        assert chosen(user) == "alice/plan"
        ok(alice, "close_buffer", buffer="plan")
        await user.sees("No open buffers")
        await user.press("escape")
        assert user.place == "agents"


async def test_enter_on_a_buffer_leads_to_it_among_all(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    opens(alice)
    ok(bob, "open_buffer", source="board", path="global")
    async with dashboard(workspace) as user:
        await to_agents(user)
        await user.press("down")
        await user.until(lambda: [each.agent for each in user.list("buffers").items] == ["bob"], "bob's")
        await user.press("tab", "tab", "enter")
        await user.until(lambda: isinstance(user.app.screen, BuffersScreen), "the buffers of all")
        await user.until(lambda: chosen(user) == "bob/global", "the one it was")
        await user.press("enter")
        assert user.pane == "buffer"


async def test_where_nothing_is_open_the_palette_says_so(workspace: Workspace, alice: Toolbox) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.chooses("buffers")
        await user.is_told("no agent has an open buffer: Show all open buffers")
        opens(alice)
        await user.sees("Buffers")
        await user.chooses("buffers")
        await user.until(lambda: user.place == "buffers", "the buffers")


async def test_the_preview_shows_the_selected_buffer(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice)
    ok(alice, "save_to_my_workspace", filename="own.md", content="a file of her own\n")
    async with dashboard(workspace) as user:
        await to_agents(user)
        await user.sees("second foo")
        await user.press("tab", "tab", "tab")
        assert user.pane == "files"
        await user.sees("a file of her own")
        await user.press("shift+tab")
        await user.sees("second foo")


async def test_an_earlier_moment_shows_the_buffer_of_then(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice)
    refused(alice, "plan_replace", old_text="foo", new_text="bar")
    then = workspace.journal.last_seq()
    ok(alice, "plan_replace_selection", selection_id=1)
    ok(alice, "plan_flush")
    ok(alice, "close_buffer", buffer="plan")
    async with past(workspace.journal, then) as user:
        await to_agents(user)
        await user.sees("first [[SEL#1]]foo[[/SEL#1]]")
        await to_buffers(user)
        await user.sees("◐ alice", "No changes: the buffer equals its source.")


async def test_at_80_columns_each_pane_can_be_reached(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice)
    ok(alice, "plan_append", text="the end\n")
    async with dashboard(workspace, size=NARROW) as user:
        await user.goes_to("2", "agents")
        await user.press("tab", "tab")
        await user.sees("✎ plan")
        assert user.shown_panes() == ["agents", "buffers"]
        await user.press("enter")
        await user.sees("✎ alice")
        await user.press("tab")
        await user.sees("third")
        await user.press("tab")
        await user.sees("+ the end")
        await user.press("escape")
        await user.until(lambda: user.place == "agents", "the agents")


async def test_texts_of_agents_are_shown_and_not_obeyed(workspace: Workspace, alice: Toolbox) -> None:
    opens(alice, "a \x1b[31mred\x1b[0m [b]foo[/b]\u202e\nfoo\n")
    refused(alice, "plan_replace", old_text="foo", new_text="\x1b]0;title\x07[@click=app.quit]x[/]")
    async with dashboard(workspace, size=WIDE) as user:
        await to_agents(user)
        await user.sees("␛[31mred", "[b][[SEL#1]]foo[[/SEL#1]][/b]", "␛]0;title␇[@click=app.qu")
