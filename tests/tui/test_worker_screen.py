"""A screen that is closed while it loads: late results do not look for its panes."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from textual.widgets import Static
from tui.driver import User, dashboard
from watchroom import Workspace
from watchroom_tui.dialogs.base import Dialog


class Text(Static):
    """Lets a result arrive at the moment of its removal."""

    def on_unmount(self) -> None:
        screen = self.screen
        assert isinstance(screen, Slow)
        screen.is_read.set()


class Slow(Dialog):
    def __init__(self) -> None:
        super().__init__()
        self.is_read = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield Text("reading")

    def on_mount(self) -> None:
        self.load()

    @work
    async def load(self) -> None:
        await self.is_read.wait()
        self.query_one(Text).update("read")


async def lies_over(user: User) -> Slow:
    screen = Slow()
    await user.app.push_screen(screen)
    await user.sees("reading")
    return screen


async def test_a_sheet_is_closed_while_it_reads(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        screen = await lies_over(user)
        await user.press("escape")
        await user.until(lambda: not screen.is_running, "the end of the sheet")
        assert user.place == "overview"


async def test_the_dashboard_is_closed_while_it_reads(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        screen = await lies_over(user)
    assert screen.is_read.is_set()
