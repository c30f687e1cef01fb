"""Calls of an attached agent's own tools are shown on every screen with agents' work."""

from __future__ import annotations

import json

import pytest
from projections.test_client_calls import begin, call, edit
from tui.driver import MIDDLE, NARROW, WIDE, dashboard, past
from watchroom import Workspace
from watchroom.agents.clients.events import PromptSubmitted, TurnEnded
from watchroom.model import PAUSE, RESUME
from watchroom_tui.keys.actions import ACTIONS

SIZES = pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE], ids=str)
HUNK = {"oldStart": 7, "oldLines": 1, "newStart": 7, "newLines": 1, "lines": ["-x = [1]", "+x = [bold]2[/]"]}


def work(workspace: Workspace) -> None:
    session = begin(workspace)
    session.record(PromptSubmitted("Fix the parser"))
    call(session, 1, "Bash", command="git push", refusal="policy_denied", result="A rule.", is_error=True)
    edit(session, 2, result=json.dumps({"structuredPatch": [HUNK]}))


@SIZES
async def test_the_overview_says_what_an_attached_agent_did_last(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    work(workspace)
    async with dashboard(workspace, size=size) as user:
        await user.sees("alice", "Edit src/a.py")
        assert "nothing yet" not in next(line for line in user.lines() if " alice " in line)
        await user.press("tab", "tab")
        activity = "\n".join(user.lines())
        assert "git push" in activity
        assert "denied: policy_denied" in activity


async def test_an_idle_agent_is_paused_and_resumed(workspace: Workspace) -> None:
    """Its client reports the pause only with its next prompt, so the person's request counts."""
    session = begin(workspace)
    session.record(PromptSubmitted("Fix the parser"))
    session.record(TurnEnded())
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.sees("○ alice")
        await user.press("p")
        await user.sees("⏸ alice", "⏸ paused", "p resume")
        await user.goes_to("1", "overview")
        await user.press("tab")
        await user.sees("p resume")
        await user.goes_to("2", "agents")
        await user.press("p")
        await user.is_told("alice is resumed")
        await user.sees("p pause")
        await user.sees("○ alice", "○ idle")
    tools = [row.tool for row in workspace.journal.rows() if row.actor.startswith("human:")]
    assert tools == [PAUSE, RESUME]


@SIZES
async def test_activity_shows_a_call_with_its_difference(workspace: Workspace, size: tuple[int, int]) -> None:
    work(workspace)
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("8", "activity")
        await user.sees("src/a.py", "git push", "denied: policy_denied")
        await user.press("enter")
        await user.sees("@@ -7,1 +7,1 @@", "-x = [1]", "+x = [bold]2[/]")


async def test_activity_filters_refused_calls(workspace: Workspace) -> None:
    work(workspace)
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.sees("src/a.py")
        await user.chooses(next(each.id for each in ACTIONS if each.id.endswith("outcome")))
        await user.chooses(next(each.id for each in ACTIONS if each.id.endswith("outcome")))
        await user.sees_no("src/a.py")
        await user.sees("git push")


@SIZES
async def test_a_file_that_a_client_edited_is_listed_without_versions(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    work(workspace)
    edit(begin(workspace, "bob", "s-2"), 1, "/project/src/b.py")
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("4", "files")
        await user.sees("◇src/a.py", "◇src/b.py")
        if size != NARROW:
            await user.sees("own tools (×1: alice)", "+x = [bold]2[/]")
        await user.press("down")
        await user.press("enter", "enter")
        assert not user.list("versions").items
        if size != NARROW:
            await user.sees("own tools (×1: bob)")


@SIZES
async def test_the_agents_screen_has_its_files_and_calls(workspace: Workspace, size: tuple[int, int]) -> None:
    work(workspace)
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("2", "agents")
        await user.sees("Edit src/a.py")
        await user.until(lambda: len(user.list("rows").items) == 2, "two calls")
        await user.until(lambda: [each.path for each in user.list("files").items] == ["src/a.py"], "the file")


async def test_a_moment_of_the_past_has_the_calls_so_far(workspace: Workspace) -> None:
    work(workspace)
    workspace.flush()
    last = workspace.journal.last_seq()
    async with past(workspace.journal, last - 1) as user:
        await user.sees("git push")
        assert not user.shows("Edit src/a.py  ")
        assert user.model.client_files == ()
    async with past(workspace.journal, last) as user:
        await user.sees("Edit src/a.py")


@SIZES
async def test_a_revert_says_which_edits_stay(workspace: Workspace, size: tuple[int, int]) -> None:
    work(workspace)
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("8", "activity")
        await user.sees("src/a.py")
        await user.press("V")
        await user.sees(
            "1 × edits by clients' own tools",
            "edits by clients' own tools cannot be reverted",
            "◇ src/a.py  alice ×1",
        )


async def test_texts_of_clients_are_neither_markup_nor_control_characters(workspace: Workspace) -> None:
    session = begin(workspace)
    name = "[red]src[/]\x1b[2J\x07/a\u202e.py"
    edit(
        session,
        1,
        f"/project/{name}",
        result=json.dumps({"structuredPatch": [{"lines": ["+\x1b[2J", 7, None]}]}),
    )
    call(
        session, 2, "[blink]\x1b[1mBash", command="ls\x1b]0;title\x07", is_error=True, result="\x1b[31mno[/]"
    )
    async with dashboard(workspace) as user:
        for key, screen in (("2", "agents"), ("4", "files"), ("8", "activity")):
            await user.goes_to(key, screen)
            await user.sees("[red]src[/]")
            shown = "\n".join(user.lines())
            assert not {"\x1b", "\x07", "\u202e"} & {*shown}
        await user.press("enter")
        await user.sees("title")
        assert "\x1b" not in "\n".join(user.lines())
