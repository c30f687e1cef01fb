"""Lands working trees one after the other. A tree that does not land does not stop the others.

If a tree conflicts with its target, the person settles the conflicts on the merge screen one by one, and is
then asked again to land the tree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.overview.model import Model
from watchroom.features.trees.rows import LAND, LANDING_PREFIX, Tree, repo_path
from watchroom.model import Json, Row

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import LinesConfirmDialog
from watchroom_tui.dialogs.land import LandOrder
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

_STEP_SECONDS: Final = 0.05
_MAX_STEPS: Final = 100
"""Maximum number of waits of `_STEP_SECONDS` until the model has the conflicts of a landing."""


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
        self._unsettled: tuple[Tree, int] | None = None
        """The tree whose conflicts the person settles, and the number of open conflicts."""

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
        if result["state"] == "conflict" and self._at + 1 == len(self._orders):
            await self._open_first_merge(order.tree)

    async def _open_first_merge(self, tree: Tree) -> None:
        """Open the merge of the first conflict of ``tree``, unless the person opened another screen."""
        conflicts: Sequence[Row] = ()
        for _ in range(_MAX_STEPS):
            conflicts = conflicts_of(self._app.model, tree)
            if conflicts or not self._is_in_front:
                break
            await asyncio.sleep(_STEP_SECONDS)
        if conflicts and self._is_in_front:
            self._unsettled = (tree, len(conflicts))
            await self._app.navigator.open_merge(conflicts[0])

    @property
    def _is_in_front(self) -> bool:
        """Whether the trees are shown without a dialog."""
        return self._app.current_mode == "tasks" and len(self._app.screen_stack) == 1

    @property
    def is_settling(self) -> bool:
        """Whether the person settles the conflicts of a landing."""
        return self._unsettled is not None

    async def open_next_merge(self) -> Tree | None:
        """Open the merge of the next conflict after the person has settled one. Return the tree if all its
        conflicts are settled."""
        if self._unsettled is None:
            return None
        tree, before = self._unsettled
        conflicts = conflicts_of(self._app.model, tree)
        if not conflicts:
            self._unsettled = None
            return tree
        if len(conflicts) < before:
            self._unsettled = (tree, len(conflicts))
            await self._app.navigator.open_merge(conflicts[0])
        return None

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


def conflicts_of(model: Model, tree: Tree) -> Sequence[Row]:
    """Return the rows of the open conflicts of a landing of ``tree``."""
    prefix = repo_path(LANDING_PREFIX + tree.id, "")
    return [each.row for each in model.conflicts if each.row.path.startswith(prefix)]
