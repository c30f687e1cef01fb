"""The tables of the embedded journal, and the steps that migrate an older file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
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

# Partial and disjoint, so that each kind of row costs one index entry.
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

# People rarely settle conflicts, but every read queries them.
_SETTLED = """
CREATE INDEX rows_settled ON rows (zone, path, seq)
    WHERE tool IN ('resolve_conflict', 'dismiss_conflict', 'revert_outside_edit') AND outcome = 'ok';
"""

# For queries without a path. Only the queried rows have an entry. The columns are computed from the row, so
# the indexes are correct for rows of any origin. The key of a call comes first, because it begins with the
# time of its session, so new entries are on the same few pages.
_LOOKUPS = """
ALTER TABLE rows ADD COLUMN topic TEXT GENERATED ALWAYS AS (CASE
    WHEN actor = 'outside' AND outcome <> 'ok' THEN 'outside:' || zone || ':' || path
    WHEN outcome <> 'ok' THEN NULL
    WHEN zone IN ('session', 'agent') AND version IS NULL
        AND tool IN ('pause_agent', 'resume_agent', 'cancel_agent', 'send_message') THEN zone || ':' || path
    WHEN zone = 'session' AND version IS NOT NULL THEN 'steps:' || actor
    WHEN zone = 'handoff' AND version IS NOT NULL AND sha256 IS NOT NULL
        THEN 'handoff:' || substr(path, instr(path, '_to_') + 4, instr(path, '/') - instr(path, '_to_') - 4)
    WHEN tool IN ('resolve_conflict', 'dismiss_conflict', 'revert_outside_edit') THEN 'settled'
    WHEN zone = 'board' AND version IS NOT NULL AND instr(detail, '"section":') AND json_valid(detail)
        THEN 'section:' || actor || char(10) || path || char(10) || json_extract(detail, '$.section')
END) VIRTUAL;
ALTER TABLE rows ADD COLUMN call TEXT GENERATED ALWAYS AS (CASE
    WHEN instr(detail, '"call":') AND json_valid(detail) THEN json_extract(detail, '$.call')
END) VIRTUAL;
CREATE INDEX rows_topic ON rows (topic, seq) WHERE topic IS NOT NULL;
CREATE INDEX rows_call ON rows (call, actor) WHERE call IS NOT NULL;
"""

# An item is open for its holder: a delivery for its receiver until it is acknowledged, a buffer for its agent
# until it is closed, a task (without a holder) until it ends, an agent for its task forever. This is a table
# because later rows close items, and the rows in a partial index never change.
_HOLDER = """CASE {row}.zone
    WHEN 'handoff'
        THEN substr({row}.path, instr({row}.path, '_to_') + 4,
            instr({row}.path, '/') - instr({row}.path, '_to_') - 4)
    WHEN 'buffer' THEN substr({row}.path, 1, instr({row}.path, '/') - 1)
    WHEN 'agent' THEN iif(json_valid({row}.detail), ifnull(json_extract({row}.detail, '$.task'), ''), '')
    ELSE '' END"""
_IS_OPEN = """CASE {row}.zone
    WHEN 'agent' THEN 1 WHEN 'task' THEN {row}.version = 1 ELSE {row}.sha256 IS NOT NULL END"""
_OPEN_ITEMS = f"""
CREATE TABLE open_items (
    zone   TEXT NOT NULL,
    holder TEXT NOT NULL,
    path   TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (zone, holder, path)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER items_open AFTER INSERT ON rows
    WHEN NEW.version IS NOT NULL AND NEW.zone IN ('handoff', 'buffer', 'task', 'agent')
BEGIN
    DELETE FROM open_items WHERE zone = NEW.zone AND holder = {_HOLDER.format(row="NEW")} AND path = NEW.path;
    INSERT INTO open_items
        SELECT NEW.zone, {_HOLDER.format(row="NEW")}, NEW.path, NEW.seq WHERE {_IS_OPEN.format(row="NEW")};
END;
CREATE TRIGGER deliveries_acknowledged AFTER INSERT ON rows
    WHEN NEW.tool = 'acknowledge_handoff' AND NEW.zone = 'handoff' AND NEW.outcome = 'ok'
BEGIN
    DELETE FROM open_items WHERE zone = 'handoff' AND holder = NEW.actor AND path = NEW.path
        AND (SELECT version FROM rows WHERE rows.seq = open_items.seq) <= ifnull(NEW.base, 0);
END;
INSERT INTO open_items
    SELECT head.zone, {_HOLDER.format(row="head")}, head.path, head.seq FROM rows AS head
    WHERE head.version IS NOT NULL AND head.zone IN ('handoff', 'buffer', 'task', 'agent')
        AND {_IS_OPEN.format(row="head")}
        AND NOT EXISTS (SELECT 1 FROM rows AS later WHERE later.zone = head.zone AND later.path = head.path
            AND later.version = head.version + 1)
        AND NOT EXISTS (SELECT 1 FROM rows AS note WHERE note.zone = 'handoff' AND note.zone = head.zone
            AND note.path = head.path AND note.actor = {_HOLDER.format(row="head")}
            AND note.tool = 'acknowledge_handoff' AND note.version IS NULL AND note.outcome = 'ok'
            AND note.base >= head.version);
"""

# The key of a draft. A second draft of the same actor with that key makes no row.
_KEYS = """
ALTER TABLE rows ADD COLUMN idempotency_key TEXT GENERATED ALWAYS AS (CASE
    WHEN instr(detail, '"idempotency_key":') AND json_valid(detail)
        THEN json_extract(detail, '$.idempotency_key')
END) VIRTUAL;
CREATE UNIQUE INDEX rows_key ON rows (idempotency_key, actor) WHERE idempotency_key IS NOT NULL;
"""

# A command is open for its task until its second version, which ends it.
_TASK = "substr({row}.path, 1, instr({row}.path, '/') - 1)"
_OPEN_COMMANDS = f"""
CREATE TRIGGER commands_open AFTER INSERT ON rows WHEN NEW.version IS NOT NULL AND NEW.zone = 'command'
BEGIN
    DELETE FROM open_items
        WHERE zone = 'command' AND holder = {_TASK.format(row="NEW")} AND path = NEW.path;
    INSERT INTO open_items
        SELECT 'command', {_TASK.format(row="NEW")}, NEW.path, NEW.seq WHERE NEW.version = 1;
END;
INSERT INTO open_items
    SELECT 'command', {_TASK.format(row="head")}, head.path, head.seq FROM rows AS head
    WHERE head.zone = 'command' AND head.version IS NOT NULL AND head.version = 1
        AND NOT EXISTS (SELECT 1 FROM rows AS later WHERE later.zone = 'command' AND later.path = head.path
            AND later.version = 2);
"""

STEPS: Final[tuple[str, ...]] = (_TABLES, _INDEXES, _SETTLED, _LOOKUPS, _OPEN_ITEMS, _KEYS + _OPEN_COMMANDS)
"""Step N migrates a journal from schema version N to N + 1. A step that has shipped is never edited."""


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the journal to the newest schema in one transaction. Raise `JournalTooNew`."""
    if _version(connection) == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _version(connection)
        if found > len(STEPS):
            raise JournalTooNew(found=found, supported=len(STEPS))
        for step in STEPS[found:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_version(connection: sqlite3.Connection) -> None:
    """Raise `JournalTooNew` if the journal cannot be read in its current form. An older journal only lacks
    indexes."""
    found = _version(connection)
    if found > len(STEPS):
        raise JournalTooNew(found=found, supported=len(STEPS))


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@cache
def _statements(script: str) -> Sequence[str]:
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return tuple(statements)
