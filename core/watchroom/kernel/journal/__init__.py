"""The journal: rows that are appended and never change, and all queries for them."""

from watchroom.kernel.journal.opening import database_name, is_server_address, open_journal, without_password
from watchroom.kernel.journal.protocol import (
    BACKSTOP_SECONDS,
    ChangedPath,
    Changes,
    Damage,
    Journal,
    LocalChanges,
    NoteKey,
    RowFilter,
)
from watchroom.kernel.journal.side_stores import Presence, Snapshot
from watchroom.kernel.journal.sqlite import SqliteJournal, open_to_read

__all__ = [
    "BACKSTOP_SECONDS",
    "ChangedPath",
    "Changes",
    "Damage",
    "Journal",
    "LocalChanges",
    "NoteKey",
    "Presence",
    "RowFilter",
    "Snapshot",
    "SqliteJournal",
    "database_name",
    "is_server_address",
    "open_journal",
    "open_to_read",
    "without_password",
]
