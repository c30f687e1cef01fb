"""Damage that our own code never does, to test that it is noticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from watchroom.kernel.checkout.location import find_journal
from watchroom.kernel.journal import is_server_address


def break_content(
    root: Path | str, path: str, version: int, content: bytes | None, *, zone: str = "collab"
) -> None:
    """Replace the content of a version in the journal, as a failing disk would. None removes it."""
    break_text(root, path, version, "content", content, zone=zone)


def break_text(
    root: Path | str, path: str, version: int, column: str, value: bytes | None, *, zone: str = "collab"
) -> None:
    """Replace a column of a version's row in the journal. None removes its value.

    A server stores bytes that are not UTF-8 only in the column ``content``.
    """
    address = journal_of(root)
    given: bytes | str | None = value
    new = "CAST(? AS TEXT)"
    if is_server_address(address):
        given = value if value is None or column == "content" else value.decode()
        new = "?"
    change_rows(
        address,
        f"UPDATE rows SET {column}={new} WHERE zone=? AND path=? AND version=?",
        given,
        zone,
        path,
        version,
    )


def change_rows(address: str | Path, statement: str, *values: object) -> None:
    """Run SQL on the rows of the journal at ``address`` as its owner, with its protecting triggers
    disabled."""
    if is_server_address(address):
        import psycopg

        with psycopg.connect(str(address)) as connection:
            connection.execute("SET search_path = watchroom")
            connection.execute("SET session_replication_role = replica")
            connection.execute(statement.replace("?", "%s").encode(), values or None)
        return
    with closing(sqlite3.connect(address)) as journal, journal:
        guards = journal.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='trigger' AND name LIKE 'rows_never_%'"
        ).fetchall()
        for name, _ in guards:
            journal.execute(f"DROP TRIGGER {name}")
        journal.execute(statement, values)
        for _, sql in guards:
            journal.execute(sql)


def lose_blobs(root: Path | str) -> None:
    """Remove the contents of binary files, which a workspace can lose."""
    address = journal_of(root)
    if is_server_address(address):
        change_rows(address, "TRUNCATE blobs")
        return
    for each in Path(address).parent.glob("blobs.db*"):
        each.unlink()


def journal_of(root: Path | str) -> str:
    """Return the address of a workspace's journal: the path of its file, or a database."""
    address = find_journal(root)
    assert address is not None
    return address


def version_file(root: Path | str, path: str, version: int) -> Path:
    return Path(root, "collaborative/.versions", path, f"v{version}.txt")
