"""Counts the statements that each thread runs: what a call costs a journal, on a server a round trip each."""

from __future__ import annotations

import sqlite3
from threading import local
from typing import Any, Final

_thread: Final = local()


class _CountingCursor(sqlite3.Cursor):
    def execute(self, sql: str, parameters: Any = (), /) -> _CountingCursor:
        _thread.count = CountingConnection.count_of_thread() + 1
        super().execute(sql, parameters)
        return self


class CountingConnection(sqlite3.Connection):
    """A connection that counts what is executed on it."""

    def cursor(self, factory: Any = _CountingCursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return _CountingCursor(self).execute(sql, parameters)

    @staticmethod
    def count_of_thread() -> int:
        """How many statements this thread has executed so far."""
        return getattr(_thread, "count", 0)
