"""The SQL of queries that only the embedded journal needs, because it has no table of heads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Final

from watchroom.kernel.journal.sql import COLUMNS, Dialect
from watchroom.model import Row, Zone

_OF_HEAD: Final = ",".join(f"head.{name}" for name in COLUMNS.split(","))


def _asked(fields: Sequence[str]) -> str:
    named = "".join(f",json_extract(value,'$[{place}]') AS {name}" for place, name in enumerate(fields))
    return f"(SELECT key+1 AS n{named} FROM json_each(?)) AS asked"


SQLITE: Final = Dialect(
    schema="",
    # A join would look up the large contents even for rows with their own content. SQLite then compares a key
    # with the whole record that it passes, regardless of its size.
    content="CAST(ifnull(r.content,"
    "(SELECT contents.content FROM contents WHERE contents.sha256=r.sha256)) AS BLOB)",
    head="(SELECT head.seq FROM rows AS head WHERE head.zone={zone} AND head.path={path}"
    " AND head.version IS NOT NULL ORDER BY head.version DESC LIMIT 1)",
    find="instr",
    asked=_asked,
    pack=lambda batch, _: (json.dumps(batch),),
)
_SELECT: Final = f"SELECT {COLUMNS} FROM rows "
_HEAD: Final = _SELECT + "WHERE zone=? AND path=? AND version IS NOT NULL ORDER BY version DESC LIMIT 1"
_HEAD_AS_OF: Final = _HEAD.replace("ORDER BY", "AND seq<=? ORDER BY")
_VERSION: Final = _SELECT + "WHERE zone=? AND path=? AND version=?"
INSERT: Final = f"INSERT INTO rows ({COLUMNS},content) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
LAST_UNTIL: Final = "SELECT seq,time FROM rows WHERE seq<=? ORDER BY seq DESC LIMIT 1"
LAST: Final = "SELECT seq,time FROM rows ORDER BY seq DESC LIMIT 1"
_LAST_ROW: Final = (
    "SELECT 'last',seq,time,'','','','',NULL,NULL,'','','',NULL,NULL,'' FROM rows"
    " WHERE seq=(SELECT max(seq) FROM rows)"
)
_HEAD_ROW: Final = f"SELECT * FROM (SELECT 'head',{_HEAD.removeprefix('SELECT ')})"
_FOLDER_ROW: Final = (
    "SELECT 'folder',0,0,'','',?,?,NULL,NULL,'','','',NULL,NULL,'' WHERE EXISTS (SELECT 1 FROM rows"
    " WHERE zone=? AND path>? AND path<? AND version IS NOT NULL)"
)


@cache
def look_up_few(heads: int, folders: int) -> str:
    """Return a query like `LOOK_UP` for ``heads`` paths and ``folders`` folders, without keys.

    Its values are not JSON, which is faster for one draft. For each path, the values are its zone and its
    path. For each folder, they are its zone, its path, its zone again, and the bounds of the paths inside.
    """
    return "\nUNION ALL\n".join((_LAST_ROW, *[_HEAD_ROW] * heads, *[_FOLDER_ROW] * folders))


LOOK_UP: Final = f"""
{_LAST_ROW}
UNION ALL
SELECT 'head',{_OF_HEAD} FROM json_each(?1) AS asked CROSS JOIN rows AS head ON head.seq=(
    SELECT seq FROM rows WHERE zone=json_extract(asked.value,'$[0]') AND path=json_extract(asked.value,'$[1]')
    AND version IS NOT NULL ORDER BY version DESC LIMIT 1)
UNION ALL
SELECT 'folder',0,0,'','',json_extract(asked.value,'$[0]'),json_extract(asked.value,'$[1]'),
    NULL,NULL,'','','',NULL,NULL,'' FROM json_each(?2) AS asked WHERE EXISTS (
    SELECT 1 FROM rows WHERE zone=json_extract(asked.value,'$[0]') AND path>json_extract(asked.value,'$[2]')
    AND path<json_extract(asked.value,'$[3]') AND version IS NOT NULL)
UNION ALL
SELECT 'key',{_OF_HEAD} FROM json_each(?3) AS asked CROSS JOIN rows AS head
    ON head.idempotency_key=json_extract(asked.value,'$[1]') AND head.actor=json_extract(asked.value,'$[0]')
"""
"""The data that an append needs.

The first column is the kind of a row: ``last`` has the number and the time of the newest row, ``head`` is the
head of a path, ``folder`` is a folder that ever had a file, ``key`` is the row with a key. The values are
three JSON arrays:

- paths: zone and path.
- folders: zone, path, and the bounds of the paths inside.
- keys: actor and key.
"""
_NEXT_PATH: Final = (
    # As bytes, so that the search passes a path that is not UTF-8, and does not find it forever.
    "SELECT CAST(path AS BLOB) FROM rows WHERE zone=? AND path>CAST(? AS TEXT) AND version IS NOT NULL"
    " ORDER BY path, version LIMIT 1"
)
_FIRST_PATH: Final = _NEXT_PATH.replace("path>", "path>=")


def find_head(
    reader: sqlite3.Connection | sqlite3.Cursor, zone: Zone, path: str, as_of: int | None
) -> Row | None:
    """Return the head of ``path``, or the head at row ``as_of``; None if there is none."""
    found = reader.execute(_HEAD, (zone, path)).fetchone()
    if found is None:
        return None
    head = Row._make(found)
    if as_of is None or head.seq <= as_of:
        return head
    # Versions of a path are 1, 2, 3 … in the order of their rows, so a binary search finds the version of a
    # moment. Rows that were not written by the tools may leave gaps. Then the versions are read.
    low, high = 0, (head.version or 1) - 1
    best: Row | None = None
    while low < high:
        middle = (low + high + 1) // 2
        found = reader.execute(_VERSION, (zone, path, middle)).fetchone()
        if found is None:
            found = reader.execute(_HEAD_AS_OF, (zone, path, as_of)).fetchone()
            return None if found is None else Row._make(found)
        row = Row._make(found)
        if row.seq <= as_of:
            low, best = middle, row
        else:
            high = middle - 1
    return best


def find_heads(
    reader: sqlite3.Connection | sqlite3.Cursor,
    zone: Zone,
    prefix: str,
    after: bytes | None,
    as_of: int | None,
    limit: int,
) -> tuple[list[Row], bytes | None]:
    """Return the heads of at most ``limit`` paths after ``after``, and the path at which to continue if any
    are left.

    Each path is one search in the index, so the cost grows with the number of paths, not of rows. A path that
    is not UTF-8 has no head.
    """
    heads: list[Row] = []
    start = prefix.encode()
    for _ in range(limit):
        sql, bound = (_FIRST_PATH, start) if after is None else (_NEXT_PATH, after)
        found = reader.execute(sql, (zone, bound)).fetchone()
        if not found or not found[0].startswith(start):
            return heads, None
        after = bytes(found[0])
        head = find_head(reader, zone, decode_damaged(after), as_of)
        if head:
            heads.append(head)
    return heads, after


def decode_damaged(data: bytes) -> str:
    """Return the text, with U+FFFD for bytes that are not UTF-8."""
    return data.decode("utf-8", "replace")
