"""Private files for front ends."""

from __future__ import annotations

from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import read_heads
from watchroom.model import Row


def list_private_files(journal: Journal, agent: str, *, as_of: int) -> tuple[Row, ...]:
    """Return the private files of ``agent`` at row ``as_of``, sorted by path. Raise `JournalError`."""
    return read_heads(journal, "private", f"{agent}/", as_of=as_of)
