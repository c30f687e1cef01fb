"""The tables of the embedded journal, and the steps that bring an older file up to date."""

from __future__ import annotations

import sqlite3
from typing import Final

from watchroom.errors import JournalTooNew

_TABLES = """
CREATE TABLE rows (
    seq      INTEGER PRIMARY KEY,
    time     INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    tool     TEXT NOT NULL,
    zone     TEXT NOT NULL,
    path     TEXT NOT NULL,
    version  INTEGER,
    base     INTEGER,
    outcome  TEXT NOT NULL CHECK (outcome IN ('ok', 'conflict', 'denied', 'failed')),
    error    TEXT NOT NULL,
    message  TEXT NOT NULL,
    sha256   TEXT,
    size     INTEGER,
    detail   TEXT NOT NULL,
    content  TEXT,
    CHECK (version IS NULL OR (version > 0 AND outcome = 'ok'))
) STRICT;
CREATE TABLE contents (sha256 TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rows_version ON rows (zone, path, version) WHERE version IS NOT NULL;
"""

# Partial and disjoint, so that a row costs one index entry, whichever kind it is.
_INDEXES = """
CREATE INDEX rows_refused ON rows (zone, path, seq) WHERE outcome <> 'ok';
CREATE INDEX rows_note ON rows (zone, path, actor, tool, seq) WHERE version IS NULL AND outcome = 'ok';
CREATE TRIGGER rows_never_change BEFORE UPDATE ON rows BEGIN SELECT RAISE(ABORT, 'rows are immutable'); END;
CREATE TRIGGER rows_never_go BEFORE DELETE ON rows BEGIN SELECT RAISE(ABORT, 'rows are immutable'); END;
CREATE TRIGGER contents_never_change BEFORE UPDATE ON contents
    BEGIN SELECT RAISE(ABORT, 'contents are immutable'); END;
CREATE TRIGGER contents_never_go BEFORE DELETE ON contents
    BEGIN SELECT RAISE(ABORT, 'contents are immutable'); END;
"""

# What people settle is seldom and is asked for at every reading.
_SETTLED = """
CREATE INDEX rows_settled ON rows (zone, path, seq)
    WHERE tool IN ('resolve_conflict', 'dismiss_conflict', 'revert_outside_edit') AND outcome = 'ok';
"""

STEPS: Final[tuple[str, ...]] = (_TABLES, _INDEXES, _SETTLED)
"""Step N brings a journal of schema version N to N + 1. A step that has shipped is never edited."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the journal to the newest schema, one transaction a step. Raises `JournalTooNew`."""
    if _version(connection) == len(STEPS):
        return
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)
            if found > len(STEPS):
                raise JournalTooNew(found=found, supported=len(STEPS))
            if found == len(STEPS):
                return
            for statement in _statements(STEPS[found]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {found + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def check_version(connection: sqlite3.Connection) -> None:
    """See that the journal can be read as it is: an older one lacks indexes. Raises `JournalTooNew`."""
    found = _version(connection)
    if found > len(STEPS):
        raise JournalTooNew(found=found, supported=len(STEPS))


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
