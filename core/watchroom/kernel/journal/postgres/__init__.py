"""The journal on a server: rows in PostgreSQL, shared by all machines that reach it (extra ``postgres``)."""

from watchroom.kernel.journal.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
