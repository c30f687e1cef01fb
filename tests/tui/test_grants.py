"""A person approves a call in a wider scope, and revokes the grant, on the requests screen."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from runtime.weather import call, calling
from tui.driver import NARROW, WIDE, dashboard
from tui.sessions import running, says
from tui.team import PLAN
from tui.test_requests_screen import sees_request
from watchroom import Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.runtime.messages import ToolCall
from watchroom_tui.presentation.grant_end import parse_end


def write_call(content: str, version: int, name: str = PLAN) -> ToolCall:
    return call("collab_write", filepath=name, content=content, message="m", expected_version=version)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_call_is_granted_for_the_session_and_the_grant_revoked(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    turns = (
        calling(write_call("one\n", 0)),
        calling(write_call("two\n", 1)),
        calling(write_call("x\n", 0, "other.md")),
        says("Done."),
    )
    async with (
        dashboard(workspace, size=size) as user,
        running(workspace, "bob", *turns, ask=["collab_write"]) as bob,
    ):
        await sees_request(user, "write shared")
        await user.press("A")
        await user.until(lambda: user.place == "GrantDialog", "the form")
        await user.sees("bob may call collab_write", "with any content", "20")
        await user.press("enter")
        # The next call to the same file is allowed, and the call to another file asks.
        await user.until(lambda: workspace.journal.head("collab", PLAN), "the first version")
        await user.until(lambda: workspace.journal.head("collab", PLAN).version == 2, "the second")  # type: ignore[union-attr]
        await user.until(lambda: user.model.requests, "the third call")
        assert workspace.journal.head("collab", "other.md") is None
        (state,) = workspace.grants.list_active()
        assert state.uses_left == 19
        await user.until(lambda: len(user.list("grants").items) == 1, "the grant")
        await user.sees("Grants", "19 left")
        user.app.screen.query_one("#grants").focus()
        await user.press("X")
        await user.is_told("Grant revoked.")
        await user.until(lambda: not user.list("grants").items, "no grant")
        await user.press("exclamation_mark")
        await user.sees("other.md")
        await user.press("a")
        assert (await bob.ended()).status == "done"
    assert workspace.grants.list_active() == []
    assert not read_model(workspace.journal, workspace.journal.last_seq()).needs


async def test_a_call_of_many_parts_can_only_be_approved_once(workspace: Workspace) -> None:
    both = calling(write_call("one\n", 0), write_call("x\n", 0, "other.md"))
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", both, says("Done."), ask=["collab_write"]),
    ):
        await sees_request(user, "write shared")
        await user.press("A")
        await user.is_told("This call can only be approved once")
        assert user.place == "requests"


NOW = datetime(2026, 3, 4, 17, 0, tzinfo=UTC)


@pytest.mark.parametrize(("text", "seconds"), [("", None), (" 1h ", 3600), ("30m", 1800), ("7d", 604800)])
def test_an_end_is_a_duration(text: str, seconds: int | None) -> None:
    assert parse_end(text, NOW) == seconds


def test_an_end_is_the_next_time_of_the_day() -> None:
    now = datetime.now().astimezone().replace(hour=17, minute=0, second=0, microsecond=0)
    hours = [(parse_end(text, now) or 0) / 3600 for text in ("18:00", "24:00", "09:00")]
    assert hours[0] == 1
    # A change of the clocks can add or take an hour.
    assert 6 <= hours[1] <= 8
    assert 15 <= hours[2] <= 17


@pytest.mark.parametrize("text", ["x", "0m", "1", "25:00", "32d", "-1h", "1h 2m"])
def test_another_text_is_no_end(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the dialog shows the text, not the error
        parse_end(text, NOW)
