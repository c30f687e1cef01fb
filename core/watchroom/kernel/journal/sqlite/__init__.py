"""The embedded journal: one SQLite file in WAL mode, shared by all processes of one machine."""

from watchroom.kernel.journal.sqlite.journal import SqliteJournal
from watchroom.kernel.journal.sqlite.read_only import open_to_read
from watchroom.kernel.journal.sqlite.writer import INLINE_BYTES

__all__ = ["INLINE_BYTES", "SqliteJournal", "open_to_read"]
