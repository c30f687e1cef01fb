"""The journal on a server: rows in PostgreSQL, shared by all connected machines (extra ``postgres``)."""

from watchroom.kernel.journal.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
