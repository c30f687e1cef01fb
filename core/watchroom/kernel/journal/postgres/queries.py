"""The SQL of queries that only the server's journal needs, because it has a table of heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom.kernel.journal.sql import COLUMNS, Dialect


def _asked(fields: Sequence[str]) -> str:
    arrays = ", ".join(["?::text[]"] * len(fields))
    return f"unnest({arrays}) WITH ORDINALITY AS asked ({', '.join(fields)}, n)"


def _pack(batch: Sequence[tuple[str, ...]], fields: int) -> list[list[str]]:
    """Return a list for each field. Each list is sent as an array.

    The server refuses texts with NUL, and no row has such a text. A tuple with such a text is replaced by
    empty texts, which match no row either.
    """
    askable = [each if "\0" not in "".join(each) else ("",) * fields for each in batch]
    return [[each[field] for each in askable] for field in range(fields)]


POSTGRES: Final = Dialect(
    schema="watchroom.",
    content="coalesce(r.content, (SELECT large.content FROM watchroom.contents AS large"
    " WHERE large.sha256 = r.sha256))",
    head="(SELECT head.seq FROM watchroom.heads AS head WHERE head.zone = {zone} AND head.path = {path})",
    find="strpos",
    asked=_asked,
    pack=_pack,
)
_OF_ROW: Final = ",".join(f"r.{name}" for name in COLUMNS.split(","))

ROWS_NUMBERED: Final = POSTGRES.select + "WHERE r.seq = ANY (?)"
LAST: Final = "SELECT seq, time FROM watchroom.tip"
HEAD: Final = f"{POSTGRES.select} WHERE r.seq = {POSTGRES.head.format(zone='?', path='?')}"
HEAD_AS_OF: Final = (
    POSTGRES.select + "WHERE r.zone = ? AND r.path = ? AND r.version IS NOT NULL AND r.seq <= ?"
    " ORDER BY r.seq DESC LIMIT 1"
)
HEADS: Final = (
    f"SELECT {_OF_ROW} FROM watchroom.heads AS h JOIN watchroom.rows AS r ON r.seq = h.seq"
    " WHERE h.zone = ? AND h.path > ? AND h.path >= ? AND h.path < ? ORDER BY h.path LIMIT ?"
)
HEADS_AS_OF: Final = (
    f"SELECT h.path, {_OF_ROW} FROM (SELECT zone, path FROM watchroom.heads WHERE zone = ? AND path > ?"
    " AND path >= ? AND path < ? ORDER BY path LIMIT ?) AS h LEFT JOIN LATERAL"
    " (SELECT * FROM watchroom.rows AS v WHERE v.zone = h.zone AND v.path = h.path AND v.version IS NOT NULL"
    " AND v.seq <= ? ORDER BY v.seq DESC LIMIT 1) AS r ON true ORDER BY h.path"
)
CONTENTS_AFTER: Final = POSTGRES.select_with_content + "WHERE r.seq > %s ORDER BY r.seq LIMIT %s"
APPEND: Final = "SELECT * FROM watchroom.append(%s, %s::jsonb, %b::bytea[])"
