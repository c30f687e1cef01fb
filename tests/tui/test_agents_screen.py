"""The agents screen: their files, and a preview of the content."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from tui.driver import dashboard
from watchroom import Toolbox, Workspace


async def test_enter_on_an_agent_opens_its_files_and_previews_them(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nbeta\n")
    ok(alice, "save_to_my_workspace", filename="b.md", content="gamma\n")
    ok(bob, "save_to_my_workspace", filename="mine.md", content="bob's own\n")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.press("down")
        assert user.cursor("agents").agent.id == "bob"
        await user.sees("bob's own")
        await user.press("up")
        await user.sees("alpha", "beta")
        await user.press("enter")
        assert user.pane == "files"
        await user.press("down")
        await user.sees("gamma")
        await user.press("enter")
        assert user.pane == "preview"


async def test_the_preview_follows_the_file_and_marks_the_lines_that_changed(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nbeta\n")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.sees("1  alpha", "2  beta")
        ok(alice, "save_to_my_workspace", filename="a.md", content="alpha\nBETA\n")
        await user.sees("1  alpha", "2 ▌BETA")


async def test_a_file_of_one_very_long_line_is_shown_and_does_not_stop_the_dashboard(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="long.md", content="start " + "x" * 120_000 + " end")
    ok(bob, "save_to_my_workspace", filename="b.md", content="short")
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.sees("1  start xxx")
        await user.press("down")
        await user.sees("1  short")


async def test_an_idle_agent_is_not_shown_with_anothers_rows(root: Path) -> None:
    with Workspace.open(root, agents=["alice", "zoe"]) as workspace:
        ok(workspace.tools("alice"), "save_to_my_workspace", filename="a.md", content="mine")
        async with dashboard(workspace) as user:
            await user.goes_to("2", "agents")
            await user.until(lambda: len(user.list("rows").items) == 1, "what alice did")
            await user.press("G")
            await user.until(lambda: not user.list("rows").items, "that zoe did nothing")
            await user.until(lambda: not user.list("files").items, "that zoe has nothing")


async def test_the_work_of_an_agent_is_handed_over_after_a_preview(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="1", message="m", expected_version=0)
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.until(lambda: user.cursor("agents").agent.id == "alice", "the cursor on alice")
        await user.press("O")
        await user.sees("The work of alice, handed over", "plan.md created, +1 -0", "receiver: bob, charlie")
        await user.press(*"bob", "tab", *"Mind it")
        await user.sees("> Mind it")
        await user.press("enter")
        await user.sees("handed over to bob")
        (delivery,) = ok(bob, "check_my_handoffs")["handoffs"]
        assert (delivery["from"], delivery["filename"]) == ("alice", "briefing.md")
        read = ok(bob, "read_handoff", from_agent="alice", filename="briefing.md")
        assert "  > Mind it" in read["content"]
        await user.press("O")
        await user.sees("receiver: bob")
        await user.press(*"bobby", "enter")
        await user.sees("There is no other agent bobby")
        await user.press("escape")
        assert len(ok(bob, "check_my_handoffs")["handoffs"]) == 1
