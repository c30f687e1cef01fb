"""Breaks what nothing of ours would ever break: for the tests that it is noticed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from watchroom.checkout.layout import CONTROL, JOURNAL_NAME


def break_content(
    root: Path | str, path: str, version: int, content: bytes | None, *, zone: str = "collab"
) -> None:
    """Have the journal hold another content for a version, as a failing disk would, or none at all."""
    break_text(root, path, version, "content", content, zone=zone)


def break_text(
    root: Path | str, path: str, version: int, column: str, value: bytes | None, *, zone: str = "collab"
) -> None:
    """Have the journal hold another text in a column of a version's row, or none at all."""
    with sqlite3.connect(Path(root, CONTROL, JOURNAL_NAME)) as journal:
        guards = journal.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='trigger' AND name LIKE '%_never_change'"
        ).fetchall()
        for name, _ in guards:
            journal.execute(f"DROP TRIGGER {name}")
        journal.execute(
            f"UPDATE rows SET {column}=CAST(? AS TEXT) WHERE zone=? AND path=? AND version=?",
            (value, zone, path, version),
        )
        for _, sql in guards:
            journal.execute(sql)
    journal.close()


def version_file(root: Path | str, path: str, version: int) -> Path:
    return Path(root, "collaborative/.versions", path, f"v{version}.txt")
