"""Read boards, current and past. To be called in threads."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.queries.config import read_config
from watchroom.queries.rows import read_content
from watchroom_whiteboards import Board
from watchroom_whiteboards.templates import render_template


class BoardSnapshot(NamedTuple):
    """A board's text as UTF-8, and the row of that version; None where it is still its template."""

    name: str
    row: Row | None
    data: bytes

    @property
    def version(self) -> int:
        return (self.row.version or 0) if self.row else 0


def read_board(journal: Journal, board: Board, head: Row | None, as_of: int) -> BoardSnapshot:
    """The board at the version ``head``, or its template as the team stood at row ``as_of``. Raises
    `JournalError`."""
    if head is None:
        config = read_config(journal, as_of=as_of)
        return BoardSnapshot(board.name, None, render_template(board, config, config.language).encode())
    return BoardSnapshot(board.name, head, (read_content(journal, head) or "").encode())
