"""Opens a journal to read, and finds the row of a moment."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from watchroom.errors import WorkspaceNotFound
from watchroom.journal import Journal, SqliteJournal
from watchroom.tree.layout import CONTROL, JOURNAL_NAME


def open_journal(root: str) -> SqliteJournal:
    """The journal of a workspace, to read. Raises `WorkspaceNotFound`."""
    path = os.path.join(root, CONTROL, JOURNAL_NAME)
    if not os.path.exists(path):
        raise WorkspaceNotFound(root=root)
    return SqliteJournal(path)


def moment(journal: Journal, text: str | None) -> int:
    """The row that ``text`` names: a row's number or an ISO 8601 time; the newest if it is None."""
    if text is None:
        return journal.last_seq()
    return min(int(text), journal.last_seq()) if text.isdigit() else journal.seq_at(nanoseconds(text))


def nanoseconds(text: str) -> int:
    """An ISO 8601 time (local where it names no zone) as nanoseconds since the epoch."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        when = when.astimezone()
    return int(when.astimezone(UTC).timestamp() * 1e9)
