"""Dialogs for the changes of a commit: a preview, and a dialog that asks for the message."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input

from watchroom_tui.dialogs.base import Dialog, ModalDialog
from watchroom_tui.formatters.diff_drawing import DiffDrawing
from watchroom_tui.formatters.drawing import Drawing
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.containers import Vertical
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane


class PreviewDialog(Dialog):
    """Preview of the changes of a commit."""

    BLANK = True

    def __init__(self, changes: DiffDrawing, title: str) -> None:
        super().__init__()
        self._changes = changes
        self._title = title

    def compose(self) -> ComposeResult:
        yield TextPane(title="pane.diff", empty="merge.no_changes", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.query_one(TextPane).show_drawing(self._title, self._changes, title=self._title)


class CommitDialog(ModalDialog[str | None]):
    """Dialog with the changes and the message of a commit. The result is the message, or None if the person
    goes back."""

    BINDINGS = bindings("commit")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("commit",)
    BLANK = True

    def __init__(self, changes: Drawing, title: str, message: str) -> None:
        """``message``: the initial message, sanitized."""
        super().__init__()
        self._changes = changes
        self._title = title
        self._message = message

    def compose(self) -> ComposeResult:
        with Vertical(id="commit"):
            yield TextPane(title="pane.diff", empty="merge.no_changes", id="changes", classes="pane")
            message = Input(self._message, id="message", max_length=2000, select_on_focus=False)
            message.border_title = content(self.dashboard.texts("merge.message"))
            message.border_subtitle = content(self.key_hints())
            yield message

    def on_mount(self) -> None:
        self.query_one(TextPane).show_drawing(self._title, self._changes, title=self._title)
        self.query_one(Input).focus()

    def action_scroll(self, pages: int) -> None:
        self.query_one(TextPane).action_scroll_pages(pages)

    def action_line(self, lines: int) -> None:
        self.query_one(TextPane).action_scroll_by(lines)

    def action_commit(self) -> None:
        self.call_after_keys(self._commit)

    def _commit(self) -> None:
        message = self.query_one(Input).value.strip()
        if message:
            self.dismiss(message)
        else:
            self.dashboard.show_message(self.dashboard.texts("merge.say_why"), "warning")
