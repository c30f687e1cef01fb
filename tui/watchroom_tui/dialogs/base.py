"""The base of dialogs that only show something; esc, q or a click outside closes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from watchroom_tui.screens.worker_screen import WorkerScreen

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class Dialog(ModalScreen[None], WorkerScreen[None]):
    """Base of what only shows something."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "app.back", show=False),
        Binding("t", "app.flip_theme", show=False),
    ]

    @property
    def watchroom(self) -> WatchroomApp:
        return cast("WatchroomApp", self.app)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.app.pop_screen()
