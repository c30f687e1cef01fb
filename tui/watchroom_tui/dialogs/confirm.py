"""Yes/no questions before a change, alone or below a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.columns import wrap
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

_CORNERS: Final = 4
"""The number of cells of a frame that are not available for its text."""
_DOT: Final = " · "


class ConfirmDialog(ModalDialog[bool]):
    """Yes/no question. The result is True for yes and False for no. The texts must be sanitized."""

    BINDINGS = bindings("confirm")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("confirm",)

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        box = Static(Content(self._question), id="question", markup=False)
        box.border_title = Content(self._title)
        yield box

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self._show_question)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_question)

    def ask(self, question: str) -> None:
        """Replace the question."""
        self._question = question
        self._show_question()

    def _show_question(self) -> None:
        """Show the question, with the keys on the frame. Show the keys below the question if the frame is too
        narrow."""
        box = self.query_one("#question", Static)
        keys = self.key_hints()
        has_space = cell_len(keys) <= box.size.width + box.styles.padding.width - _CORNERS
        box.border_subtitle = content(keys) if has_space else None
        below = "\n".join(_arrange(keys.split(_DOT), box.size.width))
        # Textual would break a Chinese sentence only at its spaces.
        lines = (
            piece.rstrip() for line in self._question.split("\n") for piece in wrap(line, box.size.width)
        )
        question = "\n".join(lines)
        box.update(Content(question if has_space else f"{question}\n\n{below}"))

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class SheetDialog(ConfirmDialog):
    """Question below a text. Subclasses load the text."""

    TEXT_TITLE: ClassVar = "pane.text"
    """The text key of the title above the text."""
    TEXT_MISSING: ClassVar = "empty.detail"
    """The text key of the placeholder until the text is loaded."""

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield TextPane(title=self.TEXT_TITLE, empty=self.TEXT_MISSING, id="changes", classes="pane")
            yield from super().compose()

    @property
    def text_view(self) -> TextPane:
        return self.query_one("#changes", TextPane)


class LinesConfirmDialog(SheetDialog):
    """Question below ``lines``. All texts must be sanitized."""

    def __init__(self, title: str, question: str, lines: Sequence[Line]) -> None:
        super().__init__(title, question)
        self._lines = lines

    def on_mount(self) -> None:
        self.text_view.show_notice("lines", [[], *self._lines], title=self._title)


def _arrange(keys: Sequence[str], width: int) -> Iterator[str]:
    """Yield lines of at most ``width`` cells with all ``keys``. No line ends between a key and its label."""
    line = keys[0]
    for each in keys[1:]:
        if cell_len(line) + len(_DOT) + cell_len(each) > width:
            yield line
            line = each
        else:
            line += _DOT + each
    yield line
