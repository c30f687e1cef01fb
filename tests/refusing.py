"""A journal that refuses chosen rows, as a full disk would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from damage import journal_of


@contextmanager
def refusing(root: Path | str, condition: str) -> Iterator[None]:
    """Refuse the rows for which ``condition`` holds, an SQL expression about ``NEW``, while the context
    lasts."""
    with closing(sqlite3.connect(journal_of(root), isolation_level=None)) as journal:
        journal.execute(
            f"CREATE TRIGGER full BEFORE INSERT ON rows WHEN {condition}"
            " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        try:
            yield
        finally:
            journal.execute("DROP TRIGGER full")


@contextmanager
def refusing_for_good(root: Path | str, condition: str) -> Iterator[None]:
    """Refuse the rows for which ``condition`` holds as rows that break a rule of the journal, while the
    context lasts."""
    with closing(sqlite3.connect(journal_of(root), isolation_level=None)) as journal:
        journal.execute("CREATE TABLE rule (broken INTEGER CHECK (broken IS NULL))")
        journal.execute(
            f"CREATE TRIGGER breaks_rule BEFORE INSERT ON rows WHEN {condition}"
            " BEGIN INSERT INTO rule VALUES (1); END"
        )
        try:
            yield
        finally:
            journal.execute("DROP TRIGGER breaks_rule")
            journal.execute("DROP TABLE rule")


@contextmanager
def slow(root: Path | str, condition: str) -> Iterator[None]:
    """Delay each row for which ``condition`` holds, an SQL expression about ``NEW``, by about a second while
    the context lasts."""
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000000)"
    with closing(sqlite3.connect(journal_of(root), isolation_level=None)) as journal:
        journal.execute(
            f"CREATE TRIGGER slow BEFORE INSERT ON rows WHEN {condition}"
            f" BEGIN SELECT count(*) FROM ({rows} SELECT i FROM n); END"
        )
        try:
            yield
        finally:
            journal.execute("DROP TRIGGER slow")
