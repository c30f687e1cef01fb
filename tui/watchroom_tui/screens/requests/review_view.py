"""The text of a request, with hunks to take or decline and lines to comment on."""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.readers.request import RequestDrawing, RequestRow
from watchroom_tui.widgets.text_pane import TextPane

REVIEW_ACTIONS: Final = ("take_hunk", "comment", "step_hunk")


class Reviewer(Protocol):
    """What a person does to hunks and lines.

    It is called and not told by a message: the next key may approve, and by then a hunk has to be declined.
    """

    def toggle_hunk(self, call: str, hunk: int) -> None:
        """Decline a hunk, by its index, of the call with the id ``call``, or take it after all."""

    def comment_on(self, row: RequestRow) -> None:
        """Have the person say something of the line of ``row``."""


class ReviewView(TextPane):
    """Shows a request. Where it can be taken in part, the cursor is on one of its rows."""

    BINDINGS = bindings("review")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("view", "review")

    def __init__(
        self,
        reviewer: Reviewer,
        *,
        title: str,
        empty: str,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._reviewer = reviewer
        self._deadline = ""

    def show_request(self, subject: object, drawing: RequestDrawing, *, title: str) -> None:
        """Show ``drawing``. Another ``subject`` than before starts at the top, with the cursor on its first
        hunk."""
        is_another = subject != self._subject
        self.show_drawing(subject, drawing, title=title, with_cursor=drawing.is_reviewed)
        row = drawing.next_hunk(-1, 1)
        if self._cursor is None or row is None:
            return
        if not is_another:
            self._show_cursor()
            return
        self._cursor = row
        self._show_foot()
        if self.has_focus:
            self.show_hunk()

    def show_deadline(self, text: str) -> None:
        """Say at the foot until when there is time; ``text`` is safe already."""
        if text != self._deadline:
            self._deadline = text
            self._show_foot()

    def foot(self) -> str:
        return " · ".join(each for each in (super().foot(), self._deadline) if each)

    def on_focus(self) -> None:
        if self._cursor is not None:
            self._show_cursor()
            self.show_hunk()
        super().on_focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in REVIEW_ACTIONS and self._cursor is None:
            return False
        return super().check_action(action, parameters)

    def action_step_hunk(self, step: int) -> None:
        """To the next hunk, or with -1 to the one before."""
        drawing = self._drawing
        if isinstance(drawing, RequestDrawing) and self._cursor is not None:
            row = drawing.next_hunk(self._cursor, step)
            if row is not None:
                self._move_cursor(row)
                self.show_hunk()

    def show_hunk(self) -> None:
        """Show what follows the row under the cursor, too: its hunk, and what is said of it."""
        line, height = self._line_of(self._cursor or 0), self.content_area.height
        if line - self.scroll_offset.y > 2 * height // 3:
            self.scroll_to(y=line - height // 3, animate=False, immediate=True)

    def action_take_hunk(self) -> None:
        """Decline the hunk under the cursor, or take it after all."""
        row = self._row
        if row is not None and row.hunk is not None:
            self._reviewer.toggle_hunk(row.call, row.hunk)
        else:
            self.app.notify(texts_of(self)("review.no_hunk"), markup=False)

    def action_comment(self) -> None:
        """Say something of the line under the cursor."""
        row = self._row
        if row is not None and row.key is not None:
            self._reviewer.comment_on(row)
        else:
            self.app.notify(texts_of(self)("review.no_line"), markup=False)

    @property
    def _row(self) -> RequestRow | None:
        """The row under the cursor, or the line that is commented on there."""
        drawing = self._drawing
        if isinstance(drawing, RequestDrawing) and self._cursor is not None:
            return drawing.line_row(self._cursor)
        return None
