"""Viewers (``--view``) see the live dashboard, and can change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from calls import ok
from tui.driver import MIDDLE, User
from tui.team import has_opened_merge
from watchroom import Toolbox, Workspace
from watchroom_tui.app import WatchroomApp


@asynccontextmanager
async def looking_at(workspace: Workspace) -> AsyncIterator[User]:
    app = WatchroomApp(workspace.journal, place="team/")
    async with app.run_test(size=MIDDLE, notifications=True) as pilot:
        user = User(app, pilot)
        await user.has_taken_in(workspace)
        yield user


async def test_viewers_see_agents_work_live(workspace: Workspace, alice: Toolbox) -> None:
    async with looking_at(workspace) as user:
        await user.sees("live, view only")
        ok(alice, "save_to_my_workspace", filename="new.md", content="x")
        await user.sees("new.md")


async def test_a_refused_revert_leaves_the_timeline_open(workspace: Workspace, conflict: int) -> None:
    async with looking_at(workspace) as user:
        await user.goes_to("7", "requests")
        await user.press("T")
        await user.until(lambda: user.app.timeline is not None, "the timeline")
        await user.press("comma")
        await user.until(lambda: not user.app.is_live, "the past")
        await user.press("V")
        await user.is_told("View only")
        assert user.app.timeline is not None


async def test_viewers_are_offered_no_acts(workspace: Workspace, conflict: int) -> None:
    before = workspace.journal.last_seq()
    async with looking_at(workspace) as user:
        await user.goes_to("2", "agents")
        assert "m message" not in user.lines()[-1]
        for key in ("m", "p", "X"):
            await user.press(key)
            await user.is_told("View only")
        await user.goes_to("6", "boards")
        await user.press("e")
        await user.is_told("View only")
        await user.press("exclamation_mark")
        await has_opened_merge(user)
        await user.press("i", "w")
        await user.is_told("View only")
    workspace.flush()
    assert workspace.journal.last_seq() == before
