"""The tables and functions of the server's journal, created and migrated in numbered steps.

Each step is a file of SQL in ``migrations``. A step that has shipped is never edited. The owner migrates a
database when it opens it; a member of a newer version is refused until then.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from psycopg import Connection, sql

from watchroom.errors import JournalTooNew

SCHEMA: Final = "watchroom"
_LOCK: Final = 0x77_61_74_63_68
"""The advisory lock under which one process at a time brings the schema up to date."""


def steps() -> list[str]:
    """The SQL of each step, in order."""
    folder = files("watchroom.journal.postgres") / "migrations"
    found = [each for each in folder.iterdir() if each.name.endswith(".sql")]
    return [each.read_text("utf-8") for each in sorted(found, key=lambda each: each.name)]


def version_of(connection: Connection) -> int:
    """How many steps the database has seen; 0 where there is no journal in it."""
    found = connection.execute("SELECT to_regclass('watchroom.schema_version') IS NOT NULL").fetchone()
    if found is None or not found[0]:
        return 0
    row = connection.execute("SELECT version FROM watchroom.schema_version").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: Connection) -> None:
    """Bring the journal in the database of ``connection`` (which commits each statement) to the newest
    schema, one transaction a step. Raises `JournalTooNew`, and what psycopg raises."""
    wanted = steps()
    found = version_of(connection)
    while found < len(wanted):
        with connection.transaction():
            # A member's open transaction may hold what a step changes.
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            found = version_of(connection)
            if found >= len(wanted):
                break
            if not found:
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
                connection.execute("CREATE TABLE watchroom.schema_version (version integer NOT NULL)")
                connection.execute("INSERT INTO watchroom.schema_version VALUES (0)")
            connection.execute("SET LOCAL search_path = watchroom, pg_temp")
            # The text is one of our own files, no input.
            connection.execute(wanted[found].encode())
            connection.execute("UPDATE watchroom.schema_version SET version = %s", (found + 1,))
        found += 1
    if found > len(wanted):
        raise JournalTooNew(found=found, supported=len(wanted))
