"""The open buffers of all agents, with their text and their unwritten changes."""

from __future__ import annotations

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.buffers.view import BufferView
from watchroom.features.overview.model import Model

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.keys.actions import bindings
from watchroom_tui.screens.agents.buffer_list import BufferList
from watchroom_tui.screens.agents.buffer_pane import reading_of, show_changes, show_text
from watchroom_tui.widgets.containers import Horizontal, Vertical
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane


class BuffersScreen(BaseScreen):
    """All open buffers, on top of the agents screen. The cursor starts on the buffer at ``path``."""

    CSS_PATH = "agents.tcss"
    SCREEN_NAME: ClassVar = "buffers"
    BINDINGS = bindings("buffers")

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self._wanted = path
        self._shown: BufferView | None = None
        self.buffers = BufferList(title="pane.buffers", empty="empty.buffers", id="buffers", classes="pane")
        self.text = TextPane(title="pane.text", empty="empty.buffer", id="buffer", classes="pane")
        self.changes = TextPane(title="pane.unwritten", empty="empty.buffer", id="unwritten", classes="pane")

    def compose_panes(self) -> ComposeResult:
        with Vertical(id="body", classes="group"):
            yield self.buffers
            with Horizontal(id="both", classes="group"):
                yield self.text
                yield self.changes

    def show_model(self, model: Model) -> None:
        self.buffers.show(model.buffers)
        if self._wanted and self.buffers.move_to(self._wanted):
            self._wanted = ""
        self._show_buffer()

    @on(ItemList.Highlighted, "#buffers")
    def choose(self) -> None:
        self._show_buffer()

    @on(ItemList.Opened, "#buffers")
    def open_buffer(self) -> None:
        self.front(self.text)

    def _show_buffer(self) -> None:
        buffer = self.buffers.item
        if buffer == self._shown:
            return
        self._shown = buffer
        if buffer is None:
            self.text.clear()
            self.changes.clear()
        else:
            self.load_buffer(buffer)

    @work(exclusive=True, group="buffer")
    async def load_buffer(self, buffer: BufferView) -> None:
        app = self.dashboard
        reading = await reading_of(app, buffer)
        show_text(app, self.text, buffer, reading)
        await show_changes(app, self.changes, buffer, reading, app.texts("pane.unwritten"))
