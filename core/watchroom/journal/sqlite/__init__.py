"""The embedded journal: one SQLite file in WAL mode, shared by all processes of one machine."""

from watchroom.journal.sqlite.journal import SqliteJournal
from watchroom.journal.sqlite.read_only import open_to_read
from watchroom.journal.sqlite.writer import INLINE_BYTES

__all__ = ["INLINE_BYTES", "SqliteJournal", "open_to_read"]
