"""An app that shows only a board: ``python benchmarks/board_app.py FILE``.

``u`` changes the section at the top.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import ClassVar

import watchroom_tui
from rich.style import Style
from textual.app import App, ComposeResult
from watchroom.texts import Catalogue
from watchroom_tui.formatters.actor_class import AgentColours
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_tui.presentation.theme import DARK, THEMES
from watchroom_tui.widgets.line_widget import StyleRegistry
from watchroom_tui.widgets.text_pane import TextPane

CHANGED = b"changed "
"""The text that an update inserts into the top section, before its number."""


class BoardApp(App[None]):
    """One `TextPane`, with the dashboard's styles."""

    CSS_PATH: ClassVar[list[str]] = [str(Path(watchroom_tui.__file__ or "").parent / "app.tcss")]  # type: ignore[assignment]

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self.line_styles: dict[str, Style] = {}
        self.agent_colours = AgentColours()
        self.texts = Catalogue("pane.preview = 'Preview'\nempty.preview = 'Nothing to show.'")
        self.data = data
        self.updates = 0
        for theme in THEMES["full"]:
            self.register_theme(theme)
        # Set as the dashboard does, so that the stylesheets are parsed once.
        self.set_reactive(BoardApp.theme, DARK)
        self.add_class(f"-theme-{DARK}", "-dark-mode")
        self.stylesheet.set_variables(self.get_css_variables())

    def compose(self) -> ComposeResult:
        yield TextPane(title="pane.preview", empty="empty.preview", id="board", classes="pane")
        yield StyleRegistry()

    def on_mount(self) -> None:
        self.show(self.data)
        self.board.focus()
        self.call_after_refresh(gc.enable)

    @property
    def board(self) -> TextPane:
        return self.query_one("#board", TextPane)

    def show(self, data: bytes) -> None:
        """Show another version of the same board."""
        self.data = data
        self.board.show_drawing("board", BoardDrawing(data), title="global-whiteboard.md")

    def key_u(self) -> None:
        """Change a line of the top section."""
        self.updates += 1
        at = self.data.find(b"\n", self.board.top_anchor) + 1
        self.show(self.data[:at] + b"\n%s%05d\n\n" % (CHANGED, self.updates) + self.data[at:])


if __name__ == "__main__":
    gc.disable()
    BoardApp(Path(sys.argv[1]).read_bytes()).run()
