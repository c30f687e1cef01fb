"""What a merge would change: to look at, or to commit with a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from watchroom_tui.comparing import Comparison
from watchroom_tui.screens.sheet import Sheet
from watchroom_tui.widgets.drawing_view import DrawingView
from watchroom_tui.widgets.drawn import content

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class PreviewScreen(Sheet):
    """What a commit would change."""

    def __init__(self, changes: Comparison, title: str) -> None:
        super().__init__()
        self._changes = changes
        self._title = title

    def compose(self) -> ComposeResult:
        yield DrawingView(title="pane.diff", empty="merge.no_changes", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.query_one(DrawingView).show_drawing(self._title, self._changes, title=self._title)


class CommitScreen(ModalScreen[str | None]):
    """The changes and the message; ends with the message, or with None if the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("up", "line(-1)", show=False),
        Binding("down", "line(1)", show=False),
    ]

    def __init__(self, changes: Comparison, title: str, message: str) -> None:
        """``message`` is safe already."""
        super().__init__()
        self._changes = changes
        self._title = title
        self._message = message

    def compose(self) -> ComposeResult:
        words = cast("WatchroomApp", self.app).words
        with Vertical(id="commit"):
            yield DrawingView(title="pane.diff", empty="merge.no_changes", id="changes", classes="pane")
            message = Input(self._message, id="message", max_length=2000, select_on_focus=False)
            message.border_title = content(words("merge.message"))
            message.border_subtitle = content(words("merge.commit_keys"))
            yield message

    def on_mount(self) -> None:
        self.query_one(DrawingView).show_drawing(self._title, self._changes, title=self._title)
        self.query_one(Input).focus()

    def action_scroll(self, pages: int) -> None:
        self.query_one(DrawingView).action_scroll_pages(pages)

    def action_line(self, lines: int) -> None:
        self.query_one(DrawingView).action_scroll_by(lines)

    @on(Input.Submitted)
    def commit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value.strip())
        else:
            app = cast("WatchroomApp", self.app)
            app.tell(app.words("merge.say_why"), "warning")
