"""The text area for a board's Markdown."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message

from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.editor import SourceArea


class BoardTextArea(SourceArea):
    BINDINGS = bindings("board_writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("board_writing",)

    class Saved(Message):
        """The person wants it to be saved."""

    class Left(Message):
        """The person goes back; what is written stays a draft."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(
            id=id, classes="pane editor", soft_wrap=True, show_line_numbers=True, tab_behavior="indent"
        )

    def open(self, source: str) -> None:
        """Write in ``source``, from its beginning."""
        self.load_source(source)
        self.move_cursor((0, 0))
        self.focus()

    @property
    def tab_text(self) -> str:
        """The pane's name, where there are tabs."""
        return str(self.border_title or "")

    def action_save(self) -> None:
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        self.post_message(self.Left())
