"""A yes/no question before something is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from watchroom_tui.screens.worker_screen import WorkerScreen

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class ConfirmDialog(ModalScreen[bool], WorkerScreen[bool]):
    """Ends with True for yes, False for no. The texts are safe already."""

    BINDINGS = [  # noqa: RUF012  # as textual has it
        Binding("y,enter", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    @property
    def watchroom(self) -> WatchroomApp:
        return cast("WatchroomApp", self.app)

    def compose(self) -> ComposeResult:
        box = Static(Content(self._asked()), id="question", markup=False)
        box.border_title = Content(self._title)
        yield box

    def ask(self, question: str) -> None:
        """Ask something else."""
        self._question = question
        self.query_one("#question", Static).update(Content(self._asked()))

    def _asked(self) -> str:
        keys = self.watchroom.texts("answer.keys")
        return f"{self._question}\n\n{keys}"

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
