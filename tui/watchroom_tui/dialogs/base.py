"""Base classes of dialogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from watchroom_tui.context import Dashboard, dashboard_of
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.keys.keymap import key_hints
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_tui.widgets.worker_screen import WorkerScreen

Result = TypeVar("Result")


class ModalDialog(ModalScreen[Result], WorkerScreen[Result]):
    """Base of all dialogs."""

    CSS_PATH = Path(__file__).with_name("dialogs.tcss")
    SCOPES: ClassVar[tuple[Scope, ...]] = ()
    """The key scopes of the dialog. Its lower edge shows these keys."""

    @property
    def dashboard(self) -> Dashboard:
        return dashboard_of(self)

    def on_mount(self) -> None:
        self.dashboard.release_keys()

    def call_after_keys(self, act: Callable[[], object]) -> None:
        """Call ``act`` after all earlier keys, unless one of them has closed the dialog.

        Earlier keys may still be queued for the focused widget, while keys of the dialog are handled at once.
        """

        def act_if_open() -> None:
            if self.is_current:
                act()

        (self.focused or self).call_later(act_if_open)

    def key_hints(self) -> str:
        """Return the keys and their actions, for the lower edge."""
        return key_hints(self, self.dashboard.texts, self.dashboard.keymap, *self.SCOPES)


class Dialog(ModalDialog[None]):
    """Base of read-only dialogs. Esc or a click outside closes the dialog."""

    BINDINGS = bindings("dialog")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("dialog",)

    async def action_back(self) -> None:
        await self.dashboard.action_back()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.app.pop_screen()


class LinesDialog(Dialog):
    """Base of dialogs that show lines of text. Subclasses create the lines."""

    TITLE_KEY: ClassVar[str]
    """The text key of the title."""

    def compose(self) -> ComposeResult:
        yield TextPane(title=self.TITLE_KEY, empty="empty.detail", id="detail", classes="pane")

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show ``lines``. Do nothing if the dialog is closed."""
        texts = self.dashboard.texts
        title = f"{texts(self.TITLE_KEY)} · {texts('help.close')}"
        for view in self.query(TextPane):
            view.show_notice(self.TITLE_KEY, list(lines), title=title)
