"""What a merge would change: to look at, or to commit with a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from watchroom_tui.screens.sheet import Sheet
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.drawn import content
from watchroom_tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


def _changes_view(lines: Sequence[Line], title: str, nothing: str, view: TextView) -> None:
    shown = lines or [[], [Span(f" {nothing}", "dim")]]
    view.show_lines(title, shown, title=title)


class PreviewScreen(Sheet):
    """The changes from the version that stands to the result so far."""

    def __init__(self, lines: Sequence[Line], title: str) -> None:
        super().__init__()
        self._lines = lines
        self._title = title

    def compose(self) -> ComposeResult:
        yield TextView(title="pane.diff", empty="empty.diff", id="detail", classes="pane")

    def on_mount(self) -> None:
        nothing = self.watchroom.words("merge.no_changes")
        _changes_view(self._lines, self._title, nothing, self.query_one(TextView))


class CommitScreen(ModalScreen[str | None]):
    """The changes and the message; ends with the message, or with None if the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("up", "line(-1)", show=False),
        Binding("down", "line(1)", show=False),
    ]

    def __init__(self, lines: Sequence[Line], title: str, message: str) -> None:
        """``message`` is safe already."""
        super().__init__()
        self._lines = lines
        self._title = title
        self._message = message

    def compose(self) -> ComposeResult:
        words = cast("WatchroomApp", self.app).words
        with Vertical(id="commit"):
            yield TextView(title="pane.diff", empty="empty.diff", id="changes", classes="pane")
            message = Input(self._message, id="message", max_length=2000, select_on_focus=False)
            message.border_title = content(words("merge.message"))
            message.border_subtitle = content(words("merge.commit_keys"))
            yield message

    def on_mount(self) -> None:
        words = cast("WatchroomApp", self.app).words
        _changes_view(self._lines, self._title, words("merge.no_changes"), self.query_one(TextView))
        self.query_one(Input).focus()

    def action_scroll(self, pages: int) -> None:
        self.query_one(TextView).action_scroll_pages(pages)

    def action_line(self, lines: int) -> None:
        self.query_one(TextView).action_scroll_by(lines)

    @on(Input.Submitted)
    def commit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value.strip())
        else:
            app = cast("WatchroomApp", self.app)
            app.tell(app.words("merge.say_why"), "warning")
