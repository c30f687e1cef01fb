"""Rows as a shell writes them with SQL, past every check of the tools."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from watchroom.model import Json

_COLUMNS = (
    "seq",
    "time",
    "actor",
    "tool",
    "zone",
    "path",
    "version",
    "base",
    "outcome",
    "error",
    "message",
    "sha256",
    "size",
    "detail",
    "content",
)


def plant(
    root: Path,
    actor: str,
    tool: str,
    zone: str,
    path: str,
    *,
    content: str | None = None,
    detail: Mapping[str, Json] | str = "",
    version: int | None = None,
    **columns: object,
) -> int:
    """Put a row into the journal's file in the folder ``root``, as any process of the user can. ``detail`` is
    its text, or what that says. Return its number."""
    return plant_many(
        root,
        [
            {
                "actor": actor,
                "tool": tool,
                "zone": zone,
                "path": path,
                "content": content,
                "detail": detail if isinstance(detail, str) else json.dumps(detail),
                "version": version,
                **columns,
            }
        ],
    )


def plant_many(root: Path, rows: list[dict[str, object]]) -> int:
    """As `plant`, of several rows; return the number of the last one."""
    with closing(sqlite3.connect(root / ".watchroom/journal.db", timeout=30)) as database, database:
        # What the table checks, a shell can have it not check.
        database.execute("PRAGMA ignore_check_constraints = 1")
        seq, time = database.execute("SELECT max(seq), max(time) FROM rows").fetchone()
        made = []
        for row in rows:
            seq += 1
            content = row.get("content")
            data = content.encode() if isinstance(content, str) else None
            fields: dict[str, object] = {
                "seq": seq,
                "time": time,
                "base": None,
                "outcome": "ok",
                "error": "",
                "message": "",
                "sha256": None if data is None else hashlib.sha256(data).hexdigest(),
                "size": None if data is None else len(data),
                "detail": "",
                "content": None,
                **row,
            }
            made.append([fields[name] for name in _COLUMNS])
        marks = ", ".join("?" * len(_COLUMNS))
        database.executemany(f"INSERT INTO rows ({', '.join(_COLUMNS)}) VALUES ({marks})", made)
    return int(seq)


def change(root: Path, statement: str, *values: object) -> None:
    """Run ``statement`` in the journal's file, whose triggers keep nobody from changing rows."""
    with closing(sqlite3.connect(root / ".watchroom/journal.db", timeout=30)) as database, database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f"DROP TRIGGER {name}")
        database.execute(statement, values)
