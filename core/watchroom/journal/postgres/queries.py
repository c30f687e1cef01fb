"""The questions that the server's journal answers, as SQL."""

from __future__ import annotations

from typing import Final

from watchroom.journal.protocol import RowFilter
from watchroom.model import CLIENT_CALL, CLIENT_DENIED, DISMISS, RESOLVE, REVERT

_NAMES: Final = "seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,detail"
COLUMNS: Final = ",".join(f"r.{name}" for name in _NAMES.split(","))
SELECT: Final = f"SELECT {COLUMNS} FROM watchroom.rows AS r "
_CONTENT: Final = (
    "coalesce(r.content, (SELECT c.content FROM watchroom.contents AS c WHERE c.sha256 = r.sha256))"
)
_OF_HEAD: Final = "JOIN watchroom.rows AS r ON r.seq = h.seq"

ROW: Final = SELECT + "WHERE r.seq = %s"
ROWS_NUMBERED: Final = SELECT + "WHERE r.seq = ANY (%s)"
ROWS: Final = SELECT + "WHERE r.seq > %s AND r.seq <= %s ORDER BY r.seq LIMIT %s"
LAST: Final = "SELECT seq, time FROM watchroom.tip"
HEAD: Final = f"SELECT {COLUMNS} FROM watchroom.heads AS h {_OF_HEAD} WHERE h.zone = %s AND h.path = %s"
HEAD_AS_OF: Final = (
    SELECT + "WHERE r.zone = %s AND r.path = %s AND r.version IS NOT NULL AND r.seq <= %s"
    " ORDER BY r.seq DESC LIMIT 1"
)
_ASKED: Final = "unnest(%s::text[], %s::text[]) WITH ORDINALITY AS asked (zone, path, n)"
HEADS_OF: Final = (
    f"SELECT asked.n, {COLUMNS} FROM {_ASKED}"
    f" JOIN watchroom.heads AS h ON h.zone = asked.zone AND h.path = asked.path {_OF_HEAD}"
)
HEADS_WITH_CONTENT: Final = HEADS_OF.replace(" FROM", f", {_CONTENT} FROM", 1)
VERSION: Final = SELECT + "WHERE r.zone = %s AND r.path = %s AND r.version = %s"
HISTORY: Final = SELECT + "WHERE r.zone = %s AND r.path = %s AND r.version > %s ORDER BY r.version LIMIT %s"
VERSIONS: Final = (
    f"SELECT {COLUMNS}, {_CONTENT} FROM watchroom.rows AS r WHERE r.zone = %s AND r.path = %s"
    " AND r.version > %s AND r.version <= %s ORDER BY r.version LIMIT %s"
)
CHANGED: Final = (
    "SELECT zone, path, actor, min(version), max(version), max(seq), count(*) FROM watchroom.rows"
    " WHERE seq > %s AND seq <= %s AND version IS NOT NULL"
    " AND (%s::text[] IS NULL OR zone = ANY (%s::text[])) GROUP BY zone, path, actor"
)
HEADS: Final = (
    f"SELECT {COLUMNS} FROM watchroom.heads AS h {_OF_HEAD} WHERE h.zone = %s AND h.path > %s"
    " AND h.path >= %s AND h.path < %s ORDER BY h.path LIMIT %s"
)
HEADS_AS_OF: Final = (
    f"SELECT h.path, {COLUMNS} FROM (SELECT zone, path FROM watchroom.heads WHERE zone = %s AND path > %s"
    " AND path >= %s AND path < %s ORDER BY path LIMIT %s) AS h LEFT JOIN LATERAL"
    " (SELECT * FROM watchroom.rows AS v WHERE v.zone = h.zone AND v.path = h.path AND v.version IS NOT NULL"
    " AND v.seq <= %s ORDER BY v.seq DESC LIMIT 1) AS r ON true ORDER BY h.path"
)
NOTES: Final = (
    "r.zone = %s AND r.path = %s AND r.actor = %s AND r.tool = %s AND r.version IS NULL AND r.outcome = 'ok'"
)
LAST_NOTES: Final = (
    f"SELECT asked.n, {COLUMNS} FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) WITH ORDINALITY"
    " AS asked (zone, path, actor, tool, n) CROSS JOIN LATERAL (SELECT * FROM watchroom.rows AS v"
    " WHERE v.zone = asked.zone AND v.path = asked.path AND v.actor = asked.actor AND v.tool = asked.tool"
    " AND v.version IS NULL AND v.outcome = 'ok' ORDER BY v.seq DESC LIMIT 1) AS r"
)
HEADS_AND_NOTES: Final = " UNION ALL ".join(
    sql.replace("SELECT", f"SELECT {is_note},", 1) for is_note, sql in enumerate((HEADS_OF, LAST_NOTES))
)
NEWEST_OF_TOPICS: Final = (
    f"{SELECT} WHERE r.seq IN (SELECT max(seq) FROM watchroom.rows"
    " WHERE topic >= %s AND topic < %s GROUP BY topic) ORDER BY r.seq"
)
OPEN_ITEMS: Final = (
    f"SELECT {COLUMNS} FROM watchroom.open_items AS h {_OF_HEAD} WHERE h.zone = %s AND h.holder = %s"
    " ORDER BY h.path"
)
CONTENTS_AFTER: Final = (
    f"SELECT {COLUMNS}, {_CONTENT} FROM watchroom.rows AS r WHERE r.seq > %s ORDER BY r.seq LIMIT %s"
)
CONTENT: Final = f"SELECT {_CONTENT} FROM watchroom.rows AS r WHERE r.seq = %s AND r.sha256 IS NOT NULL"
_OUTCOME: Final = (
    f"CASE WHEN r.tool = '{CLIENT_DENIED}' AND r.zone = 'session' AND r.outcome = 'ok'"
    " THEN 'denied' ELSE r.outcome END"
)
"""As `watchroom.model.outcome_of`."""
_NO_CALL: Final = f"r.tool NOT IN ('{CLIENT_CALL}', '{CLIENT_DENIED}')"
# As the index has it, so that it is used.
SETTLED: Final = f"r.tool IN ('{RESOLVE}', '{DISMISS}', '{REVERT}') AND r.outcome = 'ok'"
_TEXT_OF_ROW: Final = (
    # Of texts that sort by their bytes lower() folds ASCII letters only, as `RowFilter` says.
    "strpos(lower(concat_ws(E'\\n', r.actor, r.tool, r.path, r.error, r.message) COLLATE \"C\"),"
    ' lower(%s COLLATE "C")) > 0'
)
SNAPSHOT: Final = (
    "SELECT seq, data FROM watchroom.snapshots WHERE form = %s AND seq <= %s ORDER BY seq DESC LIMIT 1"
)
SNAPSHOTS: Final = "SELECT seq FROM watchroom.snapshots WHERE form = %s"
KEEP_SNAPSHOT: Final = "SELECT watchroom.keep_snapshot(%s, %s, %b, %s::bigint[])"
BLOB: Final = "SELECT data FROM watchroom.blobs WHERE sha256 = %s"
BLOBS: Final = "SELECT sha256 FROM watchroom.blobs ORDER BY kept"
BLOBS_AMONG: Final = "SELECT sha256 FROM watchroom.blobs WHERE sha256 = ANY (%s) ORDER BY kept"
KEEP_BLOBS: Final = "SELECT watchroom.keep_blobs(%b::bytea[], %s)"
APPEND: Final = "SELECT * FROM watchroom.append(%s, %s::jsonb, %b::bytea[])"


def filter_clauses(only: RowFilter) -> tuple[str, list[str | int]]:
    """What rows must be to pass ``only``, as SQL that begins with AND, and its values."""
    clauses = ""
    values: list[str | int] = []
    for clause, value in (
        ("r.actor = %s", only.actor),
        ("r.zone = %s", only.zone),
        ("r.tool = %s", only.tool),
        (f"{_OUTCOME} = %s", only.outcome),
        ("strpos(r.path, %s) > 0", only.path),
        (_TEXT_OF_ROW, only.text),
        ("r.seq > %s", only.after),
        ("r.time >= %s", only.since),
    ):
        if value is not None:
            clauses += f" AND {clause}"
            values.append(value)
    if not only.steps:
        clauses += (
            " AND NOT (r.zone = 'session' AND r.outcome = 'ok' AND NOT starts_with(r.actor, 'human:')"
            f" AND {_NO_CALL})"
        )
        clauses += " AND NOT (r.zone = 'command' AND r.tool = 'command_output')"
        clauses += (
            " AND NOT (r.zone = 'workspace' AND r.tool IN ('journal_checkpoint', 'identify_workspace')"
            " AND r.actor = 'system' AND r.outcome = 'ok')"
        )
    return clauses, values
