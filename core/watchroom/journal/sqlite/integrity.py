"""Finds what is broken inside an embedded journal, by reading all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

from watchroom.journal.protocol import Damage
from watchroom.model import parse_object
from watchroom.validation import sha256

_CACHE_KIB: Final = 64 * 1024
"""Of pages, while indexes are compared with rows: with SQLite's 2 MB that reads most pages many times."""
_TEXTS: Final = ("zone", "path", "actor", "tool", "error", "message", "detail")


def problems(reader: sqlite3.Cursor, connect: Callable[[], sqlite3.Connection]) -> list[Damage]:
    """Everything that is broken; nothing if the journal is whole. Rows are read by ``reader``; pages and
    indexes are looked at meanwhile, on a thread and a connection of their own, which ``connect`` makes:
    SQLite does that alone."""
    with ThreadPoolExecutor(1, "integrity") as pool:
        pages = pool.submit(_damaged_pages, connect)
        of_rows = [*_damaged_texts(reader), *_version_gaps(reader), *_wrong_contents(reader)]
        return [*pages.result(), *of_rows]


def _damaged_pages(connect: Callable[[], sqlite3.Connection]) -> list[Damage]:
    with closing(connect()) as connection:
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        try:
            found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check(20)")]
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_CORRUPT:
                raise
            # A page from which it could not go on; rows that stand elsewhere may be read all the same.
            found = [str(error)]
    return [] if found == ["ok"] else [Damage(line) for line in found]


def _damaged_texts(reader: sqlite3.Cursor) -> Iterator[Damage]:
    # All texts of a row at once, apart from each other: most are whole. A column that is never NULL may be so
    # in a damaged row.
    together = "CAST(" + "||char(10)||".join(_TEXTS) + " AS BLOB)"
    suspects = {
        seq for seq, data in reader.execute(f"SELECT seq, {together} FROM rows") if not _is_text(data)
    }
    # A detail that SQLite takes for JSON is JSON; of another one that is asked again.
    found = reader.execute(
        "SELECT seq FROM rows"
        " WHERE detail <> '' AND NOT (json_valid(detail) AND json_type(detail) = 'object')"
    )
    suspects.update(seq for (seq,) in found)
    as_bytes = ", ".join(f"CAST({name} AS BLOB)" for name in _TEXTS)
    for seq in sorted(suspects):
        for version, *values in reader.execute(f"SELECT version, {as_bytes} FROM rows WHERE seq=?", (seq,)):
            broken = [name for name, value in zip(_TEXTS, values, strict=True) if not _is_whole(name, value)]
            if broken:
                values = [b"" if value is None else value for value in values]
                zone, path = (value.decode("utf-8", "replace") for value in values[:2])
                yield Damage(f"row {seq}: its {', '.join(broken)} cannot be read", zone, path, version)


def _is_text(data: bytes | None) -> bool:
    if data is None:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_whole(name: str, value: bytes | None) -> bool:
    if value is None:
        return False
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return name != "detail" or not text or parse_object(text) is not None


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
        elif sha256(content) != expected:
            yield Damage(f"{of}: its content does not match its checksum", zone, path, version)
