"""The changes that a merge would commit: a preview, and a dialog that asks for the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.diff_drawing import DiffDrawing
from watchroom_tui.widgets.line_view import LineView
from watchroom_tui.widgets.line_widget import content

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class PreviewDialog(Dialog):
    """What a commit would change."""

    def __init__(self, changes: DiffDrawing, title: str) -> None:
        super().__init__()
        self._changes = changes
        self._title = title

    def compose(self) -> ComposeResult:
        yield LineView(title="pane.diff", empty="merge.no_changes", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.query_one(LineView).show_drawing(self._title, self._changes, title=self._title)


class CommitDialog(ModalScreen[str | None]):
    """The changes and the message; ends with the message, or with None if the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("up", "line(-1)", show=False),
        Binding("down", "line(1)", show=False),
    ]

    def __init__(self, changes: DiffDrawing, title: str, message: str) -> None:
        """``message`` is safe already."""
        super().__init__()
        self._changes = changes
        self._title = title
        self._message = message

    def compose(self) -> ComposeResult:
        texts = cast("WatchroomApp", self.app).texts
        with Vertical(id="commit"):
            yield LineView(title="pane.diff", empty="merge.no_changes", id="changes", classes="pane")
            message = Input(self._message, id="message", max_length=2000, select_on_focus=False)
            message.border_title = content(texts("merge.message"))
            message.border_subtitle = content(texts("merge.commit_keys"))
            yield message

    def on_mount(self) -> None:
        self.query_one(LineView).show_drawing(self._title, self._changes, title=self._title)
        self.query_one(Input).focus()

    def action_scroll(self, pages: int) -> None:
        self.query_one(LineView).action_scroll_pages(pages)

    def action_line(self, lines: int) -> None:
        self.query_one(LineView).action_scroll_by(lines)

    @on(Input.Submitted)
    def commit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value.strip())
        else:
            app = cast("WatchroomApp", self.app)
            app.show_message(app.texts("merge.say_why"), "warning")
