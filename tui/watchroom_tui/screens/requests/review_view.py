"""The text of a request, with hunks to accept or decline and commentable lines."""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.readers.request import RequestDrawing, RequestRow
from watchroom_tui.widgets.text_pane import TextPane

REVIEW_ACTIONS: Final = ("take_hunk", "comment", "step_hunk")


class Reviewer(Protocol):
    """The callbacks for hunks and lines.

    They are direct calls, not messages: a declined hunk must be recorded before the next key, which may
    approve the request.
    """

    def toggle_hunk(self, call: str, hunk: int) -> None:
        """Decline or accept the hunk with the index ``hunk`` of the call with the id ``call``."""

    def comment_on(self, row: RequestRow) -> None:
        """Let the person comment on the line of ``row``."""


class ReviewView(TextPane):
    """Shows a request. The cursor is on a row if the request can be accepted in part."""

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
        """Show ``drawing``. A new ``subject`` starts at the top, with the cursor on its first hunk."""
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
        """Show ``text``, the time left, at the foot. ``text``: already sanitized."""
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
        """Go to the next hunk (``step`` 1) or the previous hunk (``step`` -1)."""
        drawing = self._drawing
        if isinstance(drawing, RequestDrawing) and self._cursor is not None:
            row = drawing.next_hunk(self._cursor, step)
            if row is not None:
                self._move_cursor(row)
                self.show_hunk()

    def show_hunk(self) -> None:
        """Scroll so that the hunk and its comments below the cursor are also visible."""
        line, height = self._line_of(self._cursor or 0), self.content_area.height
        if line - self.scroll_offset.y > 2 * height // 3:
            self.scroll_to(y=line - height // 3, animate=False, immediate=True)

    def action_take_hunk(self) -> None:
        """Decline or accept the hunk under the cursor."""
        row = self._row
        if row is not None and row.hunk is not None:
            self._reviewer.toggle_hunk(row.call, row.hunk)
        else:
            self.app.notify(texts_of(self)("review.no_hunk"), markup=False)

    def action_comment(self) -> None:
        """Comment on the line under the cursor."""
        row = self._row
        if row is not None and row.key is not None:
            self._reviewer.comment_on(row)
        else:
            self.app.notify(texts_of(self)("review.no_line"), markup=False)

    @property
    def _row(self) -> RequestRow | None:
        """The row under the cursor. If that row is a comment, the row of the commented line."""
        drawing = self._drawing
        if isinstance(drawing, RequestDrawing) and self._cursor is not None:
            return drawing.line_row(self._cursor)
        return None
