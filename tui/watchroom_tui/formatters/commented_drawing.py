"""A text or a difference with comments by people, each below its line. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.trees.comments import TreeComment, place_comments

from watchroom_tui.formatters.drawing import Cell, DrawnLine, LinedDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize_lines

_BAR: Final = "┃ "
_SENT: Final = "✓ "
"""The mark before a sent comment."""


class _NoteRow(NamedTuple):
    """A line of a comment. ``above`` is the row of the inner drawing above the comment."""

    comment: TreeComment
    text: str
    above: int


class CommentedDrawing(LinedDrawing):
    """The drawing ``inner`` with ``comments``. ``old`` and ``new`` are the lines of HEAD and of the newest
    version."""

    def __init__(
        self, inner: LinedDrawing, comments: Sequence[TreeComment], old: Sequence[str], new: Sequence[str]
    ) -> None:
        self.inner = inner
        self.columns = inner.columns
        self._notes: list[_NoteRow] = []
        self._at: list[int] = []
        """The row of each line of the comments, in order."""
        if comments:
            self._insert(
                place_comments(old, [each for each in comments if each.is_old]),
                place_comments(new, [each for each in comments if not each.is_old]),
            )

    def _insert(
        self, old: Mapping[int, Sequence[TreeComment]], new: Mapping[int, Sequence[TreeComment]]
    ) -> None:
        for index in range(len(self.inner)):
            line = self.inner.line_at(index)
            placed = () if line is None else (old if line.is_old else new).get(line.at, ())
            for comment in placed:
                mark = _SENT if comment.sent else ""
                for text in sanitize_lines(mark + comment.text):
                    self._at.append(index + 1 + len(self._notes))
                    self._notes.append(_NoteRow(comment, text, index))

    def __len__(self) -> int:
        return len(self.inner) + len(self._notes)

    def _find(self, index: int) -> tuple[int, _NoteRow | None]:
        """Return the row of the inner drawing, and the line of a comment if the row at ``index`` is part of a
        comment."""
        before = bisect_right(self._at, index)
        if before and self._at[before - 1] == index:
            note = self._notes[before - 1]
            return note.above, note
        return index - before, None

    def line_at(self, index: int) -> DrawnLine | None:
        """Return the line in a row, or the line above the comment for a row of a comment."""
        return self.inner.line_at(self._find(index)[0])

    def comment_at(self, index: int) -> TreeComment | None:
        """Return the comment in a row. For a row of the inner drawing, return the first unsent comment
        directly below it, if any."""
        row, note = self._find(index)
        if note is not None:
            return note.comment
        below = (each.comment for each in self._notes if each.above == row)
        return next((each for each in below if not each.sent), None)

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        row, note = self._find(index)
        if note is None:
            return self.inner.row(row, reach, is_top=is_top)
        gutter = [Span(" " * (self.gutter(index) - len(_BAR))), Span(_BAR, "accent")]
        return [Cell(gutter, [Span(note.text, "dim" if note.comment.sent else "human")], "", gutter)]

    def cell_texts(self, index: int) -> Sequence[str]:
        row, note = self._find(index)
        return self.inner.cell_texts(row) if note is None else [note.text]

    def gutter(self, index: int) -> int:
        row, note = self._find(index)
        return max(self.inner.gutter(row), len(_BAR) if note is not None else 0)

    def longest(self) -> int:
        return self.inner.longest()

    def foot(self, index: int) -> str:
        return self.inner.foot(self._find(index)[0])

    def copy_text(self, index: int) -> str:
        row, note = self._find(index)
        return self.inner.copy_text(row) if note is None else note.text
