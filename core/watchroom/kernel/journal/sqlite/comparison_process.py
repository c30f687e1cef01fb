"""Compares two journals in a separate process.

Run as: ``python -m watchroom.kernel.journal.sqlite.comparison_process KEPT PATH``. It prints the `Relation`
of the journal at PATH to KEPT. If PATH has all rows of KEPT and more, KEPT becomes a copy of it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import zip_longest
from typing import Final

from watchroom.kernel.journal.sqlite.journal_files import Relation
from watchroom.kernel.journal.sqlite.queries import SQLITE
from watchroom.platform.child_process import watch_parent

_BUSY_SECONDS: Final = 10.0
_PASSING: Final = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL),
    }
)
"""Errors that do not prove damage of the journal."""


def compare(kept: sqlite3.Connection, other: sqlite3.Connection) -> Relation:
    """Return the relation of ``other`` to ``kept``."""
    try:
        if [line for (line,) in other.execute("PRAGMA quick_check(1)")] != ["ok"]:
            return "damaged"
        sql = f"{SQLITE.select} ORDER BY r.seq"
        for mine, theirs in zip_longest(kept.execute(sql), other.execute(sql)):
            if mine is None:
                return "longer"
            if theirs is None:
                return "shorter"
            if mine != theirs:
                return "different"
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING:
            raise
        return "damaged"
    return "same"


def main(arguments: Sequence[str]) -> int:
    """Print the relation of the two journals in the command line ``arguments``. Return the exit status."""
    kept_path, path = arguments
    with (
        closing(sqlite3.connect(kept_path)) as kept,
        closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as other,
    ):
        relation = compare(kept, other)
        if relation == "longer":
            other.backup(kept)
    print(relation)
    return 0


if __name__ == "__main__":
    # The process ends when its parent ends.
    watch_parent(lambda: os._exit(1))
    sys.exit(main(sys.argv[1:]))
