"""A yes/no question before something is changed, alone or below a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane


class ConfirmDialog(ModalDialog[bool]):
    """Ends with True for yes, False for no. The texts are sanitized."""

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
        """Replace the question."""
        self._question = question
        self.query_one("#question", Static).update(Content(self._question))

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class SheetDialog(ConfirmDialog):
    """A question below a text, which subclasses load."""

    TEXT_TITLE: ClassVar = "pane.text"
    """The key of the title above the text."""
    TEXT_MISSING: ClassVar = "empty.detail"
    """The key of the text that is shown until the text is there."""

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield TextPane(title=self.TEXT_TITLE, empty=self.TEXT_MISSING, id="changes", classes="pane")
            yield from super().compose()

    @property
    def text_view(self) -> TextPane:
        return self.query_one("#changes", TextPane)


class LinesConfirmDialog(SheetDialog):
    """A question below ``lines``. All texts are sanitized."""

    def __init__(self, title: str, question: str, lines: Sequence[Line]) -> None:
        super().__init__(title, question)
        self._lines = lines

    def on_mount(self) -> None:
        self.text_view.show_notice("lines", [[], *self._lines], title=self._title)
