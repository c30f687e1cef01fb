"""The questions that the embedded journal answers, as SQL."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Final

from watchroom.journal.protocol import RowFilter
from watchroom.journal.sqlite.damage import decode_damaged
from watchroom.model import CLIENT_CALL, CLIENT_DENIED, DISMISS, RESOLVE, REVERT, Row, Zone

COLUMNS: Final = "seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,detail"
_OF_HEAD: Final = ",".join(f"head.{name}" for name in COLUMNS.split(","))
SELECT: Final = f"SELECT {COLUMNS} FROM rows "
HEAD: Final = SELECT + "WHERE zone=? AND path=? AND version IS NOT NULL ORDER BY version DESC LIMIT 1"
HEAD_AS_OF: Final = HEAD.replace("ORDER BY", "AND seq<=? ORDER BY")
VERSION: Final = SELECT + "WHERE zone=? AND path=? AND version=?"
VERSIONS: Final = (
    # Not a join: that would look up the large contents for rows that have theirs, and SQLite compares a key
    # with all of the record that it passes, however large.
    f"SELECT {COLUMNS}, CAST(ifnull(content, (SELECT contents.content FROM contents"
    " WHERE contents.sha256=rows.sha256)) AS BLOB) FROM rows"
    " WHERE zone=? AND path=? AND version>? AND version<=? ORDER BY version LIMIT ?"
)
CONTENT: Final = "SELECT sha256, size, CAST(content AS BLOB) FROM rows WHERE seq=?"
LARGE_CONTENT: Final = "SELECT '', 0, CAST(content AS BLOB) FROM contents WHERE sha256=?"
NOTES: Final = "zone=? AND path=? AND actor=? AND tool=? AND version IS NULL AND outcome='ok'"
LAST_NOTES: Final = f"""
SELECT asked.key,{_OF_HEAD} FROM json_each(?) AS asked CROSS JOIN rows AS head ON head.seq=(
    SELECT seq FROM rows WHERE zone=json_extract(asked.value,'$[0]') AND path=json_extract(asked.value,'$[1]')
    AND actor=json_extract(asked.value,'$[2]') AND tool=json_extract(asked.value,'$[3]')
    AND version IS NULL AND outcome='ok' ORDER BY seq DESC LIMIT 1)
"""
"""For a JSON array of (zone, path, actor, tool) the newest notes, each with its place in the array."""
OPEN_ITEMS: Final = (
    f"SELECT {','.join(f'rows.{name}' for name in COLUMNS.split(','))} FROM open_items AS item"
    " CROSS JOIN rows ON rows.seq=item.seq WHERE item.zone=? AND item.holder=? ORDER BY item.path"
)
NEWEST_OF_TOPICS: Final = (
    f"{SELECT} WHERE seq IN (SELECT max(seq) FROM rows WHERE topic>=? AND topic<? GROUP BY topic)"
    " ORDER BY seq"
)
INSERT: Final = f"INSERT INTO rows ({COLUMNS},content) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
ROW: Final = SELECT + "WHERE seq=?"
LAST_UNTIL: Final = "SELECT seq,time FROM rows WHERE seq<=? ORDER BY seq DESC LIMIT 1"
HEADS_OF: Final = f"""
SELECT asked.key,{_OF_HEAD} FROM json_each(?) AS asked CROSS JOIN rows AS head ON head.seq=(
    SELECT seq FROM rows WHERE zone=json_extract(asked.value,'$[0]') AND path=json_extract(asked.value,'$[1]')
    AND version IS NOT NULL ORDER BY version DESC LIMIT 1)
"""
"""For a JSON array of paths (zone, path) the heads, each with its place in the array."""
HEADS_AND_NOTES: Final = "UNION ALL".join(
    sql.replace("SELECT", f"SELECT {is_note},", 1) for is_note, sql in enumerate((HEADS_OF, LAST_NOTES))
)
"""For two JSON arrays, of `HEADS_OF` and of `LAST_NOTES`, what they give; before each row whether it is a
note."""
HEADS_WITH_CONTENT: Final = HEADS_OF.replace(
    " FROM json_each",
    ", CAST(ifnull(head.content, (SELECT contents.content FROM contents WHERE contents.sha256=head.sha256))"
    " AS BLOB) FROM json_each",
)
LAST: Final = "SELECT seq,time FROM rows ORDER BY seq DESC LIMIT 1"
_LAST_ROW: Final = (
    "SELECT 'last',seq,time,'','','','',NULL,NULL,'','','',NULL,NULL,'' FROM rows"
    " WHERE seq=(SELECT max(seq) FROM rows)"
)
_HEAD_ROW: Final = (
    f"SELECT * FROM (SELECT 'head',{COLUMNS} FROM rows WHERE zone=? AND path=?"
    " AND version IS NOT NULL ORDER BY version DESC LIMIT 1)"
)
_FOLDER_ROW: Final = (
    "SELECT 'folder',0,0,'','',?,?,NULL,NULL,'','','',NULL,NULL,'' WHERE EXISTS (SELECT 1 FROM rows"
    " WHERE zone=? AND path>? AND path<? AND version IS NOT NULL)"
)


@cache
def look_up_few(heads: int, folders: int) -> str:
    """As `LOOK_UP`, for so many paths (zone and path) and so many folders (zone, path, zone, and where the
    paths inside begin and end), which are plain parameters: the quicker way for one draft."""
    return "\nUNION ALL\n".join((_LAST_ROW, *[_HEAD_ROW] * heads, *[_FOLDER_ROW] * folders))


LOOK_UP: Final = f"""
SELECT 'last',seq,time,'','','','',NULL,NULL,'','','',NULL,NULL,'' FROM rows
    WHERE seq=(SELECT max(seq) FROM rows)
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
"""What an append has to know, for three JSON arrays: of paths (zone, path) their heads; of folders (zone,
path, where the paths inside begin and end) whether anything ever was inside; of keys (actor, key) the rows
that were made with them. Before each row its kind; ``last`` is the newest row's number and time."""
CHANGED: Final = (
    # By path first: what differs soonest is sorted soonest.
    "SELECT zone,path,actor,min(version),max(version),max(seq),count(*) FROM rows NOT INDEXED"
    " WHERE seq>? AND seq<=? AND version IS NOT NULL{} GROUP BY path,zone,actor"
)
"""The versions between two rows by path and actor, where ``{}`` may stand for which zones."""
NEXT_PATH: Final = (
    # As bytes: one that is damaged must still be passed, and not be found again for ever.
    "SELECT CAST(path AS BLOB) FROM rows WHERE zone=? AND path>CAST(? AS TEXT) AND version IS NOT NULL"
    " ORDER BY path, version LIMIT 1"
)
FIRST_PATH: Final = NEXT_PATH.replace("path>", "path>=")
_OUTCOME: Final = (
    f"CASE WHEN tool='{CLIENT_DENIED}' AND zone='session' AND outcome='ok' THEN 'denied' ELSE outcome END"
)
"""As `watchroom.model.outcome_of`."""
_NO_CALL: Final = f"tool NOT IN ('{CLIENT_CALL}', '{CLIENT_DENIED}')"
# As the index has it, so that it is used.
SETTLED: Final = f"tool IN ('{RESOLVE}', '{DISMISS}', '{REVERT}') AND outcome = 'ok'"


def find_head(
    reader: sqlite3.Connection | sqlite3.Cursor, zone: Zone, path: str, as_of: int | None
) -> Row | None:
    found = reader.execute(HEAD, (zone, path)).fetchone()
    if found is None:
        return None
    head = Row._make(found)
    if as_of is None or head.seq <= as_of:
        return head
    # Versions of a path are 1, 2, 3 … in the order of their rows, so the one of a moment is found by halving;
    # where a row that no tool made left some out, by reading them.
    low, high = 0, (head.version or 1) - 1
    best: Row | None = None
    while low < high:
        middle = (low + high + 1) // 2
        found = reader.execute(VERSION, (zone, path, middle)).fetchone()
        if found is None:
            found = reader.execute(HEAD_AS_OF, (zone, path, as_of)).fetchone()
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
    most: int,
) -> tuple[list[Row], bytes | None]:
    """The heads of the next paths after ``after``, at most so many, and where to go on, None at the end.

    It hops from path to path along the index: the cost is the number of paths, not of rows. A path that is
    damaged has no head that could be asked for.
    """
    heads: list[Row] = []
    start = prefix.encode()
    for _ in range(most):
        sql, bound = (FIRST_PATH, start) if after is None else (NEXT_PATH, after)
        found = reader.execute(sql, (zone, bound)).fetchone()
        if not found or not found[0].startswith(start):
            return heads, None
        after = bytes(found[0])
        head = find_head(reader, zone, decode_damaged(after), as_of)
        if head:
            heads.append(head)
    return heads, after


def filter_clauses(only: RowFilter) -> tuple[str, list[str | int]]:
    clauses = ""
    values: list[str | int] = []
    for column, value in (
        ("actor", only.actor),
        ("zone", only.zone),
        ("tool", only.tool),
        (_OUTCOME, only.outcome),
    ):
        if value is not None:
            clauses += f" AND {column}=?"
            values.append(value)
    if only.path is not None:
        clauses += " AND instr(path,?)>0"
        values.append(only.path)
    if only.text is not None:
        # lower() of SQLite folds ASCII letters only, as `RowFilter` says.
        clauses += (
            " AND instr(lower(actor||char(10)||tool||char(10)||path||char(10)||error||char(10)||message),"
        )
        clauses += "lower(?))>0"
        values.append(only.text)
    if not only.steps:
        clauses += f" AND NOT (zone='session' AND outcome='ok' AND actor NOT LIKE 'human:%' AND {_NO_CALL})"
        clauses += " AND NOT (zone='command' AND tool='command_output')"
        clauses += (
            " AND NOT (zone='workspace' AND tool IN ('journal_checkpoint','identify_workspace')"
            " AND actor='system' AND outcome='ok')"
        )
    if only.after is not None:
        clauses += " AND seq>?"
        values.append(only.after)
    if only.since is not None:
        clauses += " AND time>=?"
        values.append(only.since)
    return clauses, values
