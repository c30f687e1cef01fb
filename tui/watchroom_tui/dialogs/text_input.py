"""Enter a text: a message, an answer, a reason, or changed arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.message_input import MessageInput

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class TextInputDialog(ModalScreen[str | None]):
    """Ends with the text, or with None if the person goes back; then `draft` is what was written so far.

    ``title`` and ``hint`` are safe already. With ``many_lines`` enter begins a new line; else it sends.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False)]

    def __init__(
        self, title: str, hint: str, text: str = "", *, many_lines: bool = False, may_be_empty: bool = False
    ) -> None:
        super().__init__()
        self.draft = text
        self._title = title
        self._hint = hint
        self._many_lines = many_lines
        self._may_be_empty = may_be_empty
        self._writer = MessageInput(enter_sends=not many_lines, id="text")
        self._is_open = False

    def compose(self) -> ComposeResult:
        texts = cast("WatchroomApp", self.app).texts
        with Vertical(id="writing", classes="-tall" if self._many_lines else ""):
            with VerticalScroll(id="hint", can_focus=False):
                yield Static(Content(self._hint), markup=False)
            keys = texts("writing.keys_many" if self._many_lines else "writing.keys")
            self._writer.border_title = content(self._title)
            self._writer.border_subtitle = content(keys)
            yield self._writer

    @property
    def has_unsent_text(self) -> bool:
        """Whether something was written that would be lost."""
        return self._is_open and self._writer.source != self.draft

    def on_mount(self) -> None:
        # A quick key may have closed it before there was anything to write in.
        if self._writer.is_attached:
            self._writer.open(self.draft)
            self._is_open = True

    def on_message_input_sent(self) -> None:
        text = self._writer.source
        if text.strip() or self._may_be_empty:
            self.dismiss(text)
        else:
            app = cast("WatchroomApp", self.app)
            app.show_message(app.texts("writing.empty"), "warning")

    def action_back(self) -> None:
        if self._is_open:
            self.draft = self._writer.source
        self.dismiss(None)
