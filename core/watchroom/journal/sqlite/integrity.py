"""Finds what is broken inside an embedded journal, by reading all of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from watchroom import validation
from watchroom.journal.protocol import Damage


def problems(reader: sqlite3.Cursor) -> list[Damage]:
    """Everything that is broken; nothing if the journal is whole."""
    return [
        *_damaged_pages(reader),
        *_damaged_texts(reader),
        *_version_gaps(reader),
        *_wrong_contents(reader),
    ]


def _damaged_pages(reader: sqlite3.Cursor) -> list[Damage]:
    found = [str(line) for (line,) in reader.execute("PRAGMA integrity_check(20)")]
    return [] if found == ["ok"] else [Damage(line) for line in found]


def _damaged_texts(reader: sqlite3.Cursor) -> Iterator[Damage]:
    texts = ("zone", "path", "actor", "tool", "error", "message", "detail")
    as_bytes = ", ".join(f"CAST({name} AS BLOB)" for name in texts)
    for seq, version, *values in reader.execute(f"SELECT seq, version, {as_bytes} FROM rows"):
        broken = [name for name, value in zip(texts, values, strict=True) if not _is_whole(name, value)]
        if broken:
            zone, path = (value.decode("utf-8", "replace") for value in values[:2])
            yield Damage(f"row {seq}: its {', '.join(broken)} cannot be read", zone, path, version)


def _is_whole(name: str, value: bytes) -> bool:
    try:
        text = value.decode()
        return name != "detail" or not text or isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _version_gaps(reader: sqlite3.Cursor) -> list[Damage]:
    found = reader.execute(
        "SELECT zone, path, count(*), max(version) FROM rows WHERE version IS NOT NULL"
        " GROUP BY zone, path HAVING count(*) <> max(version)"
    )
    return [
        Damage(f"{count} versions are kept, the newest is v{newest}", zone, path)
        for zone, path, count, newest in found
    ]


def _wrong_contents(reader: sqlite3.Cursor) -> Iterator[Damage]:
    for seq, zone, path, version, expected, content in reader.execute(
        # As bytes: a text that is broken may be no UTF-8 any more. Not a join: that would look up the large
        # contents for every row.
        "SELECT seq, zone, path, version, sha256, CAST(ifnull(content,"
        " (SELECT contents.content FROM contents WHERE contents.sha256 = rows.sha256)) AS BLOB)"
        " FROM rows WHERE sha256 IS NOT NULL"
    ):
        of = f"row {seq}" if version is None else f"v{version} (row {seq})"
        if content is None:
            if version is not None:
                yield Damage(f"{of}: its content is missing", zone, path, version)
        elif validation.sha256(content) != expected:
            yield Damage(f"{of}: its content does not match its checksum", zone, path, version)
