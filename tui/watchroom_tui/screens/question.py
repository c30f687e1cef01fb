"""A question to be answered with yes or no, before something is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class QuestionScreen(ModalScreen[bool]):
    """Ends with True for yes, False for no. The texts are safe already."""

    BINDINGS = [  # noqa: RUF012  # as textual has it
        Binding("y,enter", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        keys = cast("WatchroomApp", self.app).words("answer.keys")
        box = Static(Content(f"{self._question}\n\n{keys}"), id="question", markup=False)
        box.border_title = Content(self._title)
        yield box

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
