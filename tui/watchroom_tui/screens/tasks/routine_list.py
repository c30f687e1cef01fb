"""The routines: when each runs next, how its last run ended, and what it has spent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.features.routines.rows import STOP_ROUTINE, Routine
from watchroom.features.routines.rules import SECOND

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.local_time import local_date
from watchroom_tui.formatters.routines import next_text, outcome_text, spent_text, trigger_text
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

_READ_SECONDS: Final = 2.0
"""Seconds between two reads of the routines."""
_FAILED: Final = ("failed", "timeout", "budget", "interrupted")


class RoutineItem(NamedTuple):
    """A line of the list. ``is_served``: whether the service runs the routine."""

    routine: Routine
    is_served: bool


class RoutineList(ItemList[RoutineItem]):
    """The routines by name."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("list",)
    COLUMNS: ClassVar = (
        Column(least=6, most=24),
        Column(least=8, most=30),
        Column(least=16, grows=True),
        Column(least=8, most=30),
        Column(least=8),
        Column(least=10, optional=True),
    )

    def item_key(self, item: RoutineItem) -> Hashable:
        return item.routine.name

    def cells(self, item: RoutineItem) -> Sequence[Line]:
        routine, texts, now = item.routine, texts_of(self), now_of(self)
        is_active = routine.is_active(now)
        style = "error" if routine.last_state in _FAILED else "" if routine.last_state else "dim"
        will_run = item.is_served or routine.is_running or not is_active
        return (
            [Span(" "), Span(sanitize(routine.name), "strong" if is_active else "dim")],
            [Span(trigger_text(routine.plan, texts), "dim")],
            [Span(next_text(routine, now, texts, is_served=item.is_served), "" if will_run else "warning")],
            [Span(outcome_text(routine, texts), style)],
            [Span(spent_text(routine, texts))],
            [Span(local_date(routine.plan.until - SECOND), "dim")],
        )

    def item_text(self, item: RoutineItem) -> str:
        return f"{item.routine.name} {item.routine.prompt}"

    def copy_text(self, item: RoutineItem) -> str:
        return item.routine.name


class RoutinesPane:
    """Reads the routines of the workspace, and shows them in ``routines``."""

    def __init__(self, screen: BaseScreen, routines: RoutineList) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._routines = routines
        self._due = 0.0

    def follow_the_clock(self) -> None:
        """Read the routines again if that is due."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _READ_SECONDS
            self._screen.run_worker(self.load(), group="routines", exclusive=True)

    async def load(self) -> None:
        """Read the routines. Without an open workspace, the list stays as it is."""
        workspace = self._app.workspace
        if workspace is None or not self._app.is_live:
            return
        try:
            items = await asyncio.to_thread(_read_items, workspace)
        except WatchroomError:
            # The journal's server does not answer. The header reports that.
            return
        self._routines.show(items)
        self._routines.set_class(not items, "-away")

    @property
    def can_stop(self) -> bool:
        """Whether the routine under the cursor can be stopped."""
        item = self._routines.item
        return item is not None and item.routine.is_active(self._app.now())

    async def stop(self) -> None:
        """Stop the routine under the cursor if the person confirms. Await this in a worker."""
        app, item = self._app, self._routines.item
        if item is None:
            return
        if not app.can_act:
            app.explain_read_only()
            return
        texts, name = app.texts, sanitize(item.routine.name)
        question = texts("routines.stop_question", name=name)
        if await app.push_screen_wait(ConfirmDialog(texts("routines.stop_title"), question)):
            answer = await app.act(STOP_ROUTINE, {"routine": item.routine.name})
            if answer is not None and not answer["success"]:
                app.show_failure(answer)
            await self.load()


def _read_items(workspace: Workspace) -> list[RoutineItem]:
    # Imported late: the code of clients is slow to load.
    from watchroom.agents.clients.routine_run import is_served

    found = workspace.routines.list()
    served = bool(found) and is_served(workspace.root)
    return [RoutineItem(each, served) for each in found]
