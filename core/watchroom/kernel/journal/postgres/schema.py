"""The tables and functions of the server's journal. Numbered steps create and migrate them.

Each step is a file of SQL in ``migrations``. A step that has shipped is never edited. Opening a database as
its owner migrates it. A member with a newer version is refused until then.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from psycopg import Connection, sql

from watchroom.errors import JournalTooNew

SCHEMA: Final = "watchroom"
_LOCK: Final = 0x77_61_74_63_68
"""The id of the advisory lock that is held during a migration."""


def steps() -> list[str]:
    """Return the SQL of each step, in order."""
    folder = files("watchroom.kernel.journal.postgres") / "migrations"
    found = [each for each in folder.iterdir() if each.name.endswith(".sql")]
    return [each.read_text("utf-8") for each in sorted(found, key=lambda each: each.name)]


def version_of(connection: Connection) -> int:
    """Return the number of steps that were applied to the database, 0 if it has no journal."""
    found = connection.execute("SELECT to_regclass('watchroom.schema_version') IS NOT NULL").fetchone()
    if found is None or not found[0]:
        return 0
    row = connection.execute("SELECT version FROM watchroom.schema_version").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: Connection) -> None:
    """Migrate the journal to the newest schema, in one transaction for each step.

    ``connection`` commits each statement. Raise `JournalTooNew`, and errors of psycopg.
    """
    wanted = steps()
    found = version_of(connection)
    while found < len(wanted):
        with connection.transaction():
            # A member's open transaction may lock a table that a step changes.
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
            # The text is a file of this package, and not input.
            connection.execute(wanted[found].encode())
            connection.execute("UPDATE watchroom.schema_version SET version = %s", (found + 1,))
        found += 1
    if found > len(wanted):
        raise JournalTooNew(found=found, supported=len(wanted))
