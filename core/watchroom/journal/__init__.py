"""The journal: rows that are appended and never change, and everything that can be asked of them."""

from watchroom.journal.changed_paths import ChangedPath
from watchroom.journal.changes import LocalChanges
from watchroom.journal.opening import database_name, is_server_address, open_journal, without_password
from watchroom.journal.protocol import (
    BACKSTOP_SECONDS,
    Changes,
    Damage,
    Journal,
    NoteKey,
    Presence,
    RowFilter,
)
from watchroom.journal.snapshots import Snapshot
from watchroom.journal.sqlite import SqliteJournal, open_to_read

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
