"""The text or the difference of a file, with commentable lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

from watchroom.features.trees.comments import MAX_QUOTED_LINES, TreeComment

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters.commented_drawing import CommentedDrawing
from watchroom_tui.formatters.drawing import DrawnLine
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.widgets.text_pane import TextPane

_ACTIONS: Final = ("comment", "mark_lines")


class ChosenLines(NamedTuple):
    """The lines that a person comments on, all of the old text or all of the new text. ``comment``: the
    comment to edit, None for a new comment."""

    lines: tuple[DrawnLine, ...]
    comment: TreeComment | None


class ChangeView(TextPane):
    """Shows a file. The cursor is on a line if lines can be commented on.

    ``on_comment`` is called with the chosen lines when a person comments.
    """

    BINDINGS = bindings("line_comments")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("view", "line_comments")

    def __init__(
        self,
        on_comment: Callable[[ChosenLines], object],
        *,
        title: str,
        empty: str,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._on_comment = on_comment
        self._mark: int | None = None
        """The row where the mark was set, None without a mark."""

    @property
    def _commented(self) -> CommentedDrawing | None:
        drawing = self._drawing
        return drawing if isinstance(drawing, CommentedDrawing) and self._cursor is not None else None

    @property
    def line(self) -> DrawnLine | None:
        """The line under the cursor, None if there is no line."""
        drawing = self._commented
        return None if drawing is None or self._cursor is None else drawing.line_at(self._cursor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _ACTIONS and self._commented is None:
            return False
        return super().check_action(action, parameters)

    def action_mark_lines(self) -> None:
        """Start to mark lines at the cursor, or remove the mark."""
        self._mark = self._cursor if self._mark is None else None
        self.refresh()

    def clear_mark(self) -> bool:
        """Remove the mark. Return False if there is no mark."""
        had_mark = self._mark is not None
        self._mark = None
        self.refresh()
        return had_mark

    def action_comment(self) -> None:
        """Comment on the line under the cursor or on the marked lines, or edit the comment there."""
        drawing, cursor = self._commented, self._cursor
        if drawing is None or cursor is None:
            return
        rows = self._marked_rows()
        here = drawing.line_at(cursor)
        comment = drawing.comment_at(cursor) if self._mark is None else None
        found = (drawing.line_at(row) for row in rows)
        lines = [
            each for each in found if each is not None and here is not None and each.is_old == here.is_old
        ]
        if comment is None and not lines:
            dashboard_of(self).show_message(texts_of(self)("review.no_line"))
            return
        self.clear_mark()
        self._on_comment(ChosenLines(tuple(dict.fromkeys(lines))[:MAX_QUOTED_LINES], comment))

    def _marked_rows(self) -> range:
        cursor = self._cursor or 0
        mark = cursor if self._mark is None else self._mark
        return range(min(mark, cursor), max(mark, cursor) + 1)

    def style_under(self, index: int) -> str:
        style = super().style_under(index)
        is_marked = self._mark is not None and index in self._marked_rows()
        return style or ("cursor-idle" if is_marked else "")
