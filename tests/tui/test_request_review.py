"""An approval by hunks: only taken hunks are written, and the agent reads the comments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from calls import ok
from mcp import types
from runtime.weather import call, calling
from serving.clients import within
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.sessions import Running, running, says
from tui.team import PLAN, write
from watchroom import Toolbox, Workspace
from watchroom.features.sessions.runtime import ToolMessage
from watchroom_tui.services.request_actions import RequestActions

BEFORE = "one\ntwo\nthree\nfour\nfive\n"
AFTER = "one\n2\nthree\nfour\nFIVE\nsix\n"
"""Two hunks: line 2 is replaced, and so are the last lines."""
CHANGE = {"filepath": PLAN, "content": AFTER, "message": "digits", "expected_version": 1}


def asking(**more: Any) -> Any:
    return calling(call("collab_write", **{**CHANGE, **more}))


def text_of(workspace: Workspace) -> str | None:
    head = workspace.journal.head("collab", PLAN)
    return workspace.journal.content(head.seq) if head is not None else None


def told(bob: Running, call_id: str = "call_1") -> Mapping[str, Any]:
    """Return the result of the call that the model got."""
    (content,) = [
        message.content
        for message in bob.session.state.messages
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id
    ]
    found: Mapping[str, Any] = json.loads(content)
    return found


async def opens_review(user: User, title: str = "2 of 2 hunks taken") -> None:
    """Go to the first hunk of the most urgent request."""
    await user.until(lambda: user.model.requests, "a request")
    await user.press("exclamation_mark")
    await user.until(lambda: title in str(user.text("request").border_title), title)
    if user.pane != "request":
        await user.press("enter")
    await user.until(lambda: user.pane == "request", "the request with the keys")


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_declined_hunks_are_not_written_and_the_model_is_told(
    workspace: Workspace, alice: Toolbox, size: tuple[int, int]
) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace, size=size) as user,
        running(workspace, "bob", asking(), says("Done."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.sees("☑    2 − two", "hunk 1 of 2: taken")
        await user.press("space")
        await user.sees("1 of 2 hunks taken", "☐    2 − two", "hunk 1 of 2: declined")
        await user.press("right_square_bracket", "down", "semicolon")
        await user.sees("Comment on line 5")
        await user.type("why so loud?")
        await user.press("enter")
        await user.sees("┃ why so loud?")
        await user.press("a")
        assert (await bob.ended()).status == "done"
        assert text_of(workspace) == "one\ntwo\nthree\nfour\nFIVE\nsix\n"
        result = told(bob)
        assert result["edited_arguments"]["content"] == text_of(workspace)
        notice = result["notice"]
        assert (
            "human:dana approved this call, with the comment: 1 of the 2 hunks of this call were taken"
            in notice
        )
        assert "Declined: lines 2.\nTaken: lines 5-6.\nLine 5 (FIVE): why so loud?" in notice
        await user.sees("approved, ed")
        await user.press("t")
        await user.sees("→ v2 (arg")
        assert not user.app.drafts.unsaved(user.model)


async def test_hunks_declined_in_fast_typing_are_not_written(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("Done."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.press_at_once("space", "right_square_bracket", "a")
        await bob.ended()
        assert text_of(workspace) == "one\ntwo\nthree\nfour\nFIVE\nsix\n"


async def test_nothing_taken_is_a_rejection_with_the_comments(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("I leave it."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.press("semicolon", *"keep two", "enter")
        await user.press("space", "right_square_bracket", "space")
        await user.sees("0 of 2 hunks taken")
        await user.press("a")
        await bob.ended()
        assert text_of(workspace) == BEFORE
        assert told(bob)["error"] == "rejected"
        assert (
            "No hunk of this call was taken (of 2).\nLine 2 of the old text (two): keep two"
            in (told(bob)["reason"])
        )


async def test_a_rejection_carries_the_comments_and_a_hunk_may_be_taken_after_all(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("I leave it."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.press("space", "space")
        await user.sees("2 of 2 hunks taken")
        await user.press("semicolon", *"no digits", "enter")
        await user.sees("┃ no digits")
        await user.press("r", *"not today", "enter")
        await bob.ended()
        assert told(bob)["reason"] == "not today\nLine 2 of the old text (two): no digits"
        assert text_of(workspace) == BEFORE


async def test_indivisible_calls_are_rejected(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, AFTER, 0)
    write(alice, BEFORE, 1)
    back = calling(call("collab_rollback", filepath=PLAN, to_version=1, expected_version=2))
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", back, says("I see."), ask=["collab_rollback"]) as bob,
    ):
        await opens_review(user)
        await user.press("space")
        await user.sees("This call cannot be approved in part")
        await user.press("a")
        await user.is_asked("Nothing is written.")
        await user.press("escape")
        assert user.model.requests, "nothing is sent yet"
        await user.press("a")
        await user.is_asked("Nothing is written.")
        await user.press("enter")
        await bob.ended()
        assert text_of(workspace) == BEFORE
        assert "nothing was done. Make only the changes" in told(bob)["reason"]
        assert "Taken: lines 5-6." in told(bob)["reason"]


async def test_the_cursor_stays_on_its_line_when_a_row_comes_above_it(
    workspace: Workspace, alice: Toolbox
) -> None:
    """Declining a hunk of an indivisible call shows a row about that."""
    write(alice, AFTER, 0)
    write(alice, BEFORE, 1)
    back = calling(call("collab_rollback", filepath=PLAN, to_version=1, expected_version=2))
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", back, says("I see."), ask=["collab_rollback"]) as bob,
    ):
        await opens_review(user)
        await user.press("space")
        await user.sees("This call cannot be approved in part", "hunk 1 of 2: declined")
        await user.press("semicolon")
        await user.sees("Comment on line 2 of the old text")
        await user.press(*"keep it", "enter")
        await user.sees("┃ keep it")
        await user.press("space")
        await user.sees("2 of 2 hunks taken", "hunk 1 of 2: taken")
        await user.press("r", *"no", "enter")
        await bob.ended()
        assert told(bob)["reason"] == "no\nLine 2 of the old text (two): keep it"


async def test_a_begun_review_is_kept_asked_about_and_not_passed_over_elsewhere(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("Done."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.press("space", "1")
        await user.until(lambda: user.place == "overview", "the overview")
        RequestActions(user.app).approve_need(user.model.needs[0])
        await user.is_told("You have started a review")
        await user.press("q")
        await user.is_asked("discard: answer to bob")
        await user.press("escape")
        await opens_review(user, "1 of 2 hunks taken")
        await user.press("a")
        await bob.ended()
        assert text_of(workspace) == "one\ntwo\nthree\nfour\nFIVE\nsix\n"


async def test_arguments_are_edited_from_what_is_taken(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("Done."), ask=["collab_write"]) as bob,
    ):
        await opens_review(user)
        await user.press("space", "e")
        await user.sees(r'"content": "one\ntwo\nthree\nfour\nFIVE\nsix\n"')
        await user.press("ctrl+s")
        await bob.ended()
        assert text_of(workspace) == "one\ntwo\nthree\nfour\nFIVE\nsix\n"


async def test_a_hunk_of_one_call_of_several_is_declined(workspace: Workspace, alice: Toolbox) -> None:
    saves = [
        call("save_to_my_workspace", f"call_{number}", filename="x.md", content=f"{number}\n")
        for number in (1, 2)
    ]
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(*saves), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.until(lambda: user.model.requests, "a request")
        await user.press("exclamation_mark")
        await user.sees("2 of 2 hunks taken")
        await user.press("tab")
        await user.until(lambda: user.pane == "request", "the request")
        await user.press("space", "a")
        await bob.ended()
        assert told(bob, "call_1")["error"] == "rejected"
        head = workspace.journal.head("private", "bob/x.md")
        assert head is not None
        assert workspace.journal.content(head.seq) == "2\n"


async def test_a_clients_file_gets_the_taken_hunks_and_its_result_the_comments(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath=PLAN, content=BEFORE, message="m")
    async with (
        dashboard(workspace) as user,
        within(workspace, workspace.tools("bob"), approval_tools=["collab_write"]) as client,
    ):
        writing = asyncio.create_task(client.call_tool("collab_write", CHANGE))
        await opens_review(user)
        await user.press("right_square_bracket", "semicolon", *"too loud", "enter")
        await user.sees("┃ too loud")
        await user.press("space", "a")
        result = await asyncio.wait_for(writing, 20)
    assert not result.is_error
    assert text_of(workspace) == "one\n2\nthree\nfour\nfive\n"
    notice, _ = (each.text for each in result.content if isinstance(each, types.TextContent))
    assert "human:dana approved this call with edited arguments: content." in notice
    assert "Declined: lines 5-6.\nTaken: lines 2.\nLine 5 of the old text (five): too loud" in notice


async def test_a_key_without_a_hunk_under_the_cursor_shows_a_notice(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, BEFORE, 0)
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asking(), says("Done."), ask=["collab_write"]),
    ):
        await opens_review(user)
        await user.press("home", "space")
        await user.is_told("No change is under the cursor")
        await user.press("semicolon")
        await user.is_told("No line is under the cursor")
        await user.press("left_square_bracket", "right_square_bracket", "space")
        await user.sees("1 of 2 hunks taken")
