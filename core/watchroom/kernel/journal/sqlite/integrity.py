"""Finds the damages of an embedded journal by reading it completely.

Run as: ``python -m watchroom.kernel.journal.sqlite.integrity PATH``. It prints the damages as JSON. A long
journal is read in this separate process, because threads share the interpreter: the simultaneous verification
of seals took 50 % longer.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final
from urllib.parse import quote

from watchroom.kernel.journal.protocol import Damage
from watchroom.model import parse_object
from watchroom.platform.child_process import run_module, watch_parent
from watchroom.validation import sha256

_CACHE_KIB: Final = 64 * 1024
"""Cache of the check that compares indexes with rows, in KiB. With SQLite's default of 2 MB, it reads most
pages many times."""
_log = logging.getLogger("watchroom")
_TEXTS: Final = ("zone", "path", "actor", "tool", "error", "message", "detail")


MANY_ROWS: Final = 100_000
"""Number of rows above which the journal is checked in a separate process. A smaller check is faster than
starting a process."""
_BUSY_SECONDS: Final = 60.0
_MAPPED_BYTES: Final = 2**31
"""Maximum bytes of the file that are mapped into memory. An unreadable page kills this process. Then the
caller checks the journal itself."""


def problems(reader: sqlite3.Cursor, connect: Callable[[], sqlite3.Connection]) -> list[Damage]:
    """Return the damages of the journal.

    ``reader`` reads the rows. At the same time, a thread checks pages and indexes on its own connection from
    ``connect``, because SQLite does this without the interpreter lock.
    """
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
            # The check stopped at this page. Rows on other pages may be readable.
            found = [str(error)]
    return [] if found == ["ok"] else [Damage(line) for line in found]


def _damaged_texts(reader: sqlite3.Cursor) -> Iterator[Damage]:
    # Check all texts of a row together first, because most are valid. In a damaged row, columns that are
    # declared NOT NULL may be NULL.
    together = "CAST(" + "||char(10)||".join(_TEXTS) + " AS BLOB)"
    suspects = {
        seq for seq, data in reader.execute(f"SELECT seq, {together} FROM rows") if not _is_text(data)
    }
    # Details that SQLite accepts as JSON are valid. The others are checked again below.
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
        # As bytes, because a damaged text may not be UTF-8. Not as a join, which would look up the large
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


def find_damage_apart(path: str) -> list[Damage] | None:
    """Return the damages of the journal at ``path``, found by a child process. None if the child fails, which
    can have other reasons than damage."""
    try:
        done = run_module(__name__, path)
    except OSError as error:
        _log.warning("the process that looks for damage failed: %s", error.strerror)
        return None
    return [Damage(*each) for each in json.loads(done.output)] if done.status == 0 else None


def main(arguments: Sequence[str]) -> int:
    """Print the damages of the journal at the path in ``arguments``. Return the exit status."""
    (path,) = arguments

    def connect() -> sqlite3.Connection:
        # ``mode=rw`` does not create a missing file.
        uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
        )
        connection.execute("PRAGMA query_only=1")
        connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")
        return connection

    with closing(connect()) as connection:
        json.dump(problems(connection.cursor(), connect), sys.stdout)
    return 0


if __name__ == "__main__":
    # The process ends when its parent ends.
    watch_parent(lambda: os._exit(1))
    sys.exit(main(sys.argv[1:]))
