"""Count the SQL statements that a thread sends to a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    import psycopg


_SET_UP: Final = "SET client_connection_check_interval"


class StatementCount:
    """The statements that the creating thread has sent to journals since."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        """Each statement with its values, as passed to the database's module."""
        self._thread = get_ident()

    @property
    def statements(self) -> int:
        """Number of statements."""
        return len(self.sent)

    def add(self, sql: Any, values: Any = ()) -> None:
        """Add one statement if this is the counted thread."""
        if get_ident() == self._thread:
            self.sent.append((sql, values))


@contextmanager
def counted_on_sqlite() -> Iterator[StatementCount]:
    """Count the statements of SQLite journals that are opened within the context.

    `sqlite3.Connection.set_trace_callback` is of no use: it reports an INSERT once for each trigger too.
    """
    count, connect = StatementCount(), sqlite3.connect

    class CountedCursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = (), /) -> CountedCursor:
            count.add(sql, parameters)
            super().execute(sql, parameters)
            return self

    class CountedConnection(sqlite3.Connection):
        def cursor(self, factory: Any = CountedCursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            return CountedCursor(self).execute(sql, parameters)

    def connect_counted(database: str, *args: Any, **options: Any) -> Any:
        if Path(database).name == "journal.db":
            options["factory"] = CountedConnection
        return connect(database, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_counted)
        yield count


@contextmanager
def counted_on_postgres() -> Iterator[StatementCount]:
    """Count the statements that are sent to PostgreSQL within the context. Each is a round trip.

    The set-up of a connection does not count, because other threads decide which call needs one.
    """
    import psycopg

    count, execute = StatementCount(), psycopg.Cursor.execute

    def execute_counted(cursor: psycopg.Cursor[Any], *args: Any, **options: Any) -> psycopg.Cursor[Any]:
        if _SET_UP not in str(args[0]):
            count.add(*args[:2])
        return execute(cursor, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", execute_counted)
        yield count
