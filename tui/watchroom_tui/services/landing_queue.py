"""Lands working trees one after the other. A tree that does not land stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from watchroom.features.trees.rows import LAND
from watchroom.model import Json

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import LinesConfirmDialog
from watchroom_tui.dialogs.land import LandOrder
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines


class QueuePlace(NamedTuple):
    """The place of a tree in the queue. ``number``: from 1. ``of``: the number of trees."""

    number: int
    of: int
    is_landing: bool


class LandingQueue:
    """The landings that wait in the dashboard ``app``. ``on_change``: called when a place changes."""

    def __init__(self, app: Dashboard, on_change: Callable[[], None]) -> None:
        self._app = app
        self._on_change = on_change
        self._orders: list[LandOrder] = []
        self._at = 0
        self.is_running = False

    def add(self, orders: Iterable[LandOrder]) -> None:
        """Add ``orders`` at the end. A tree that waits already keeps its place."""
        waiting = {each.tree.id for each in self._orders[self._at + 1 :]}
        self._orders += [each for each in orders if each.tree.id not in waiting]
        self._on_change()

    def places(self) -> Mapping[str, QueuePlace]:
        """Return the places of the trees that wait or land, by the trees' ids."""
        of = len(self._orders)
        left = [*enumerate(self._orders[self._at :], self._at)]
        return {each.tree.id: QueuePlace(at + 1, of, at == self._at) for at, each in reversed(left)}

    async def run(self) -> None:
        """Land the trees until none is left. Await this in a worker, once at a time."""
        self.is_running = True
        try:
            while self._at < len(self._orders):
                self._on_change()
                await self._land(self._orders[self._at])
                self._at += 1
        finally:
            self._orders, self._at, self.is_running = [], 0, False
            self._on_change()

    async def _land(self, order: LandOrder) -> None:
        app, texts, tree = self._app, self._app.texts, order.tree
        if order.check:
            app.show_message(texts("land.checking", tree=branch_text(tree)))
        arguments: dict[str, Json] = {"tree": tree.id, "into": order.into or None, "check": [*order.check]}
        result = await app.act(LAND, arguments)
        if result is None:
            return
        if not result["success"]:
            app.show_failure(result)
            return
        self._report(order, result)

    def _report(self, order: LandOrder, result: Mapping[str, Json]) -> None:
        app, texts, state = self._app, self._app.texts, result["state"]
        status = result.get("status")
        values = {
            "tree": branch_text(order.tree),
            "into": sanitize(str(result["into"])),
            "commit": str(result["commit"])[:12],
            "status": texts("cli.try.timeout") if status is None else str(status),
        }
        said = texts("land.recorded" if state == "conflict" else f"cli.land.{state}", **values)
        if state == "check_failed" and len(app.screen_stack) == 1:
            output = sanitize_lines(str(result["output"]).rstrip())
            lines: list[Line] = [[Span(f" {each}")] for each in output]
            app.push_screen(LinesConfirmDialog(texts("land.title", **values), said, lines))
            return
        app.show_message(said, "information" if state in ("landed", "up_to_date") else "warning")
