"""Readers of boards, current and past. Call them in threads."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.features.overview.reads import read_config
from watchroom.kernel.journal import Journal
from watchroom.model import Row
from watchroom_whiteboards import Board
from watchroom_whiteboards.templates import render_template


class BoardSnapshot(NamedTuple):
    """The text of a board in UTF-8, and the row of its version. The row is None for the template."""

    name: str
    row: Row | None
    data: bytes

    @property
    def version(self) -> int:
        return (self.row.version or 0) if self.row else 0


def read_board(journal: Journal, name: str, head: Row | None, as_of: int) -> BoardSnapshot:
    """Return the board called ``name``.

    - ``head``: the row of the version, None for the template.
    - ``as_of``: the row at which the team is read for the template.

    Raise `InvalidName` if ``head`` is None and the name is invalid for boards. Raise `JournalDamaged` if
    the text cannot be read, and `JournalError`.
    """
    if head is None:
        board, config = Board.named(name), read_config(journal, as_of=as_of)
        return BoardSnapshot(name, None, render_template(board, config, config.language).encode())
    return BoardSnapshot(name, head, (journal.content(head.seq) or "").encode())
