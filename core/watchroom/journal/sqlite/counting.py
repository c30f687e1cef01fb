"""Counts the statements that each thread runs: what a call costs a journal, on a server a round trip each."""

from __future__ import annotations

import sqlite3
from threading import local
from typing import Any, Final

_thread: Final = local()


class CountingConnection(sqlite3.Connection):
    """A connection that counts what is executed on it."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        _thread.count = CountingConnection.count_of_thread() + 1
        return super().execute(sql, parameters)

    @staticmethod
    def count_of_thread() -> int:
        """How many statements this thread has executed so far."""
        return getattr(_thread, "count", 0)
