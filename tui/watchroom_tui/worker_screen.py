"""The base of all screens: they load data in workers, and say when the terminal is too small for them."""

from __future__ import annotations

from typing import TypeVar

from textual import events, on
from textual.messages import Prune
from textual.screen import Screen

from watchroom_tui.size_notice import SizeNotice, is_too_small

Result = TypeVar("Result")


class WorkerScreen(Screen[Result]):
    """What it still works on is cancelled before its panes go, which are removed before the screen is. A
    reading that comes back meanwhile would look for them."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-high")]  # noqa: RUF012  # as textual has it

    @on(events.Resize)
    def notice_small_size(self, event: events.Resize) -> None:
        """Say it where there is too little space for it."""
        if is_too_small(event.size) and self.app.screen is self:
            self.app.push_screen(SizeNotice())

    async def on_prune(self, event: Prune) -> None:
        self.workers.cancel_node(self)
