"""The journal: rows that are appended and never change, and everything that can be asked of them."""

from watchroom.journal.protocol import Damage, Journal, RowFilter
from watchroom.journal.reading import open_to_read
from watchroom.journal.sqlite import SqliteJournal

__all__ = ["Damage", "Journal", "RowFilter", "SqliteJournal", "open_to_read"]
