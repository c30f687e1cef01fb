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
        """Requests to save the text."""

    class Left(Message):
        """A request to close the editor. Unsaved text is kept as a draft."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(
            id=id, classes="pane editor", soft_wrap=True, show_line_numbers=True, tab_behavior="indent"
        )

    def open(self, source: str) -> None:
        """Load ``source`` and take the focus, with the cursor at the beginning."""
        self.load_source(source)
        self.move_cursor((0, 0))
        self.focus()

    @property
    def tab_text(self) -> str:
        """The name on this pane's tab, if only one pane is visible."""
        return str(self.border_title or "")

    def action_save(self) -> None:
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        self.post_message(self.Left())
