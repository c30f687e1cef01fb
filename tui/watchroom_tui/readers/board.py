"""Read boards, current and past. To be called in threads."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.features.overview.reads import read_config
from watchroom.kernel.journal import Journal
from watchroom.model import Row
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


def read_board(journal: Journal, name: str, head: Row | None, as_of: int) -> BoardSnapshot:
    """Return the board called ``name`` at the version ``head``, or its template as the team stood at row
    ``as_of``. Raise `InvalidName` if no board has that name and nothing was written to it; `JournalDamaged`
    if its text cannot be read; `JournalError`."""
    if head is None:
        board, config = Board.named(name), read_config(journal, as_of=as_of)
        return BoardSnapshot(name, None, render_template(board, config, config.language).encode())
    return BoardSnapshot(name, head, (journal.content(head.seq) or "").encode())
