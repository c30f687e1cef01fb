"""A question about a text that is shown above it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical

from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.widgets.text_pane import TextPane


class PreviewDialog(ConfirmDialog):
    """Shows ``lines``, and ends with whether the person says yes. All texts are safe already."""

    def __init__(self, title: str, question: str, lines: Sequence[Line]) -> None:
        super().__init__(title, question)
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield TextPane(title="pane.text", empty="empty.detail", id="changes", classes="pane")
            yield from super().compose()

    def on_mount(self) -> None:
        self.query_one("#changes", TextPane).show_notice("preview", [[], *self._lines], title=self._title)
