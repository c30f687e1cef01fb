"""The input for a message to an agent."""

from __future__ import annotations

from textual import events
from textual.message import Message

from watchroom_tui.actions import bindings
from watchroom_tui.widgets.editor import SourceArea


class MessageInput(SourceArea):
    """A text, character for character. Enter sends it, or begins a new line; then ctrl+s sends."""

    BINDINGS = bindings("writing")

    class Sent(Message):
        """The person has finished."""

    def __init__(self, *, enter_sends: bool, id: str) -> None:  # noqa: A002
        super().__init__(id=id, classes="pane", soft_wrap=True, show_line_numbers=False)
        self._enter_sends = enter_sends

    def open(self, text: str) -> None:
        """Write on in ``text``, from its end."""
        self.load_source(text)
        self.move_cursor(self.document.end)
        self.focus()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter" and self._enter_sends:
            event.stop()
            event.prevent_default()
            self.action_send()
        elif event.key in ("ctrl+j", "shift+enter") and self._enter_sends:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def action_send(self) -> None:
        self.post_message(self.Sent())
