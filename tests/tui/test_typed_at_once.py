"""Keys that are typed in one burst act as if they were typed slowly."""

from __future__ import annotations

import pytest
from textual.widgets import Input
from tui.driver import User, dashboard
from watchroom import Workspace
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext
from watchroom_tui.keys.actions import SCREENS

pytestmark = pytest.mark.slow(8)


async def all_read(user: User) -> None:
    await user.until(lambda: user.app.progress == 1.0, "the whole journal")
    await user.settle()


@pytest.mark.parametrize(("key", "screen"), SCREENS)
async def test_text_for_a_filter_follows_the_screen(
    workspace: Workspace, conflict: int, key: str, screen: str
) -> None:
    start = "2" if key == "1" else "1"
    async with dashboard(workspace) as user:
        await all_read(user)
        await user.press(start)
        await user.press_at_once(key, "slash", *"qux")
        await user.until(lambda: user.place == screen, screen)
        typed = user.app.focused
        assert isinstance(typed, Input)
        assert typed.value == "qux"


@pytest.mark.parametrize(("key", "screen"), SCREENS)
async def test_the_second_pane_follows_the_screen(
    workspace: Workspace, conflict: int, key: str, screen: str
) -> None:
    async def pane(*, at_once: bool) -> str | None:
        async with dashboard(workspace) as user:
            await all_read(user)
            await user.press("2" if key == "1" else "1")
            await (user.press_at_once if at_once else user.press)(key, "tab")
            await user.until(lambda: user.place == screen, screen)
            return user.pane

    assert await pane(at_once=True) == await pane(at_once=False)


async def test_a_need_is_answered_as_soon_as_it_is_gone_to(workspace: Workspace) -> None:
    workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "Which?"))
    async with dashboard(workspace) as user:
        await all_read(user)
        await user.press_at_once("exclamation_mark", "enter", *"That", "enter")
        await user.until(lambda: not user.app.needs, "that it is answered")
    (answered,) = [row for row in workspace.journal.rows(limit=100) if row.tool == "answer_request"]
    assert "That" in (workspace.journal.content(answered.seq) or "")
