"""A yes/no question before something is changed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.line_widget import content


class ConfirmDialog(ModalDialog[bool]):
    """Ends with True for yes, False for no. The texts are safe already."""

    BINDINGS = bindings("confirm")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("confirm",)

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        box = Static(Content(self._question), id="question", markup=False)
        box.border_title = Content(self._title)
        box.border_subtitle = content(self.key_hints())
        yield box

    def ask(self, question: str) -> None:
        """Ask something else."""
        self._question = question
        self.query_one("#question", Static).update(Content(self._question))

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
