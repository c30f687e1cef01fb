"""The bases of dialogs: what all of them share, and those that only show something."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, TypeVar

from textual import events
from textual.screen import ModalScreen

from watchroom_tui.context import Dashboard, dashboard_of
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.keys.keymap import key_hints
from watchroom_tui.widgets.worker_screen import WorkerScreen

Result = TypeVar("Result")


class ModalDialog(ModalScreen[Result], WorkerScreen[Result]):
    """Base of all dialogs."""

    CSS_PATH = Path(__file__).with_name("dialogs.tcss")
    SCOPES: ClassVar[tuple[Scope, ...]] = ()
    """Whose keys work in it, and stand at its lower edge."""

    @property
    def dashboard(self) -> Dashboard:
        return dashboard_of(self)

    def on_mount(self) -> None:
        self.dashboard.release_keys()

    def key_hints(self) -> str:
        """The keys and what they do, for the lower edge."""
        return key_hints(self, self.dashboard.texts, self.dashboard.keymap, *self.SCOPES)


class Dialog(ModalDialog[None]):
    """Base of what only shows something: esc or a click outside closes it."""

    BINDINGS = bindings("dialog")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("dialog",)

    async def action_back(self) -> None:
        await self.dashboard.action_back()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.app.pop_screen()
