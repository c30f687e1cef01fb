"""Opens a journal by its address."""

from __future__ import annotations

import os

from watchroom.errors import JournalError
from watchroom.journal.protocol import Journal
from watchroom.journal.sqlite import SqliteJournal


def open_journal(where: str | os.PathLike[str]) -> Journal:
    """The journal at ``where``: the path of a SQLite file, made if missing; ``postgresql://…`` for the one in
    a server's database (extra ``postgres``), made if missing; or ``memory:`` for a new one of this process
    alone.

    Raises `JournalError` for an address that no backend answers to, and as the backend does.
    """
    address = os.fspath(where)
    if address == "memory:":
        from watchroom.journal.memory import MemoryJournal

        return MemoryJournal()
    scheme, is_url, _ = address.partition("://")
    if is_url and scheme in ("postgresql", "postgres"):
        try:
            from watchroom.journal.postgres import PostgresJournal
        except ImportError as error:
            raise JournalError(reason=f"{error}: install watchroom[postgres]") from error
        return PostgresJournal(address)
    if is_url:
        raise JournalError(reason=f"no journal answers to {scheme}://")
    return SqliteJournal(address)
