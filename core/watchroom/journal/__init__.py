"""The journal: rows that are appended and never change, and everything that can be asked of them."""

from watchroom.journal.protocol import Damage, Journal, RowFilter
from watchroom.journal.sqlite import SqliteJournal, open_to_read

__all__ = ["Damage", "Journal", "RowFilter", "SqliteJournal", "open_to_read"]
