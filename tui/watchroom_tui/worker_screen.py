"""The base of screens that load data in workers."""

from __future__ import annotations

from typing import TypeVar

from textual.messages import Prune
from textual.screen import Screen

Result = TypeVar("Result")


class WorkerScreen(Screen[Result]):
    """What it still works on is cancelled before its panes go, which are removed before the screen is. A
    reading that comes back meanwhile would look for them."""

    async def on_prune(self, event: Prune) -> None:
        self.workers.cancel_node(self)
