"""Ask for the passphrase of the person's key."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.line_widget import content

_LONGEST = 1_000


class UnlockDialog(ModalDialog[str | None]):
    """Input for a passphrase. The result is the passphrase, or None if the person goes back. The texts must
    be sanitized."""

    BINDINGS = bindings("unlock")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("unlock",)

    def __init__(self, title: str, hint: str) -> None:
        super().__init__()
        self._title = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(id="unlock"):
            yield Static(Content(self._hint), id="hint", markup=False)
            passphrase = Input(password=True, id="passphrase", max_length=_LONGEST)
            passphrase.border_title = content(self._title)
            passphrase.border_subtitle = content(self.key_hints())
            yield passphrase

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def action_unlock(self) -> None:
        self.dismiss(self.query_one(Input).value)
