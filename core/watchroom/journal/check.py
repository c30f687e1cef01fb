"""Finds what is broken inside an embedded journal, by reading all of it."""

from __future__ import annotations

import sqlite3

from watchroom import names


def problems(reader: sqlite3.Connection) -> list[str]:
    """One sentence a problem; none if the journal is whole."""
    return [*_damaged_pages(reader), *_version_gaps(reader), *_wrong_contents(reader)]


def _damaged_pages(reader: sqlite3.Connection) -> list[str]:
    found = [str(line) for (line,) in reader.execute("PRAGMA integrity_check(20)")]
    return [] if found == ["ok"] else found


def _version_gaps(reader: sqlite3.Connection) -> list[str]:
    found = reader.execute(
        "SELECT zone, path, count(*), max(version) FROM rows WHERE version IS NOT NULL"
        " GROUP BY zone, path HAVING count(*) <> max(version)"
    )
    return [
        f"{zone} {path}: {count} versions are kept, the newest is {newest}"
        for zone, path, count, newest in found
    ]


def _wrong_contents(reader: sqlite3.Connection) -> list[str]:
    wrong = []
    for seq, zone, path, version, expected, content in reader.execute(
        "SELECT seq, zone, path, version, rows.sha256, ifnull(rows.content, contents.content) FROM rows"
        " LEFT JOIN contents ON contents.sha256 = rows.sha256 WHERE rows.sha256 IS NOT NULL"
    ):
        if content is None:
            if version is not None:
                wrong.append(f"row {seq} ({zone} {path} v{version}): its content is missing")
        elif names.sha256(content.encode()) != expected:
            wrong.append(f"row {seq} ({zone} {path}): its content does not match its checksum")
    return wrong
