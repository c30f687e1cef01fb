"""The queries for rows, written once for every journal in a SQL database."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import JournalDamaged
from watchroom.kernel.journal.protocol import ChangedPath, NoteKey, RowFilter, ascii_lower
from watchroom.kernel.journal.topics import end_of_prefix
from watchroom.model import CLIENT_CALL, CLIENT_DENIED, DISMISS, HUMAN_PREFIX, RESOLVE, REVERT, Row, Zone

COLUMNS: Final = "seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,detail"
_OF_ROW: Final = ",".join(f"r.{name}" for name in COLUMNS.split(","))
_NO_BOUND: Final = sys.maxsize
"""A limit above every row number, version and number of rows."""
_IS_VERSION_OF: Final = (
    "WHERE r.zone=? AND r.path=? AND r.version>? AND r.version<=? ORDER BY r.version LIMIT ?"
)
_IS_NOTE: Final = "r.version IS NULL AND r.outcome='ok'"
# This is the text of the index. SQLite uses the index only if the condition is the same.
_IS_SETTLING: Final = f"r.tool IN ('{RESOLVE}', '{DISMISS}', '{REVERT}') AND r.outcome = 'ok'"
# The same as `watchroom.model.outcome_of`.
_OUTCOME: Final = (
    f"CASE WHEN r.tool='{CLIENT_DENIED}' AND r.zone='session' AND r.outcome='ok'"
    " THEN 'denied' ELSE r.outcome END"
)
# The same as `watchroom.model.is_step`.
_IS_NO_STEP: Final = (
    " AND NOT (r.zone='session' AND r.outcome='ok'"
    f" AND substr(r.actor,1,{len(HUMAN_PREFIX)})<>'{HUMAN_PREFIX}'"
    f" AND r.tool NOT IN ('{CLIENT_CALL}','{CLIENT_DENIED}'))"
    " AND NOT (r.zone='command' AND r.tool='command_output')"
    " AND NOT (r.zone='workspace' AND r.tool IN ('journal_checkpoint','identify_workspace')"
    " AND r.actor='system' AND r.outcome='ok')"
)

Effort: TypeAlias = Literal["lookup", "page", "scan"]
"""The effort of a query: a few rows by an index, a page of rows, or any number of rows."""


class Dialect(NamedTuple):
    """The differences between the SQL of SQLite and PostgreSQL.

    - ``schema``: the prefix of a table's name.
    - ``content``: an expression for the content of row ``r`` as bytes, NULL if the row has none.
    - ``head``: an expression for the number of the head of a path, with ``{zone}`` and ``{path}`` for the two
      values.
    - ``find``: the function that returns the position of its second argument in its first, 0 if it is
      missing.
    - ``asked``: takes the names of fields, and returns SQL for a table ``asked`` with the tuples of a batch.
      It has these fields and ``n``, the position in the batch from 1.
    - ``pack``: takes a batch of tuples and the number of their fields, and returns the values for ``asked``.
    """

    schema: str
    content: str
    head: str
    find: str
    asked: Callable[[Sequence[str]], str]
    pack: Callable[[Sequence[tuple[str, ...]], int], Sequence[Any]]

    @property
    def select(self) -> str:
        """A query for rows, named ``r``, without conditions."""
        return f"SELECT {_OF_ROW} FROM {self.schema}rows AS r "

    @property
    def select_with_content(self) -> str:
        """Like `select`, with the content of each row as the last column."""
        return f"SELECT {_OF_ROW},{self.content} FROM {self.schema}rows AS r "


class SqlReads(ABC):
    """The part of `Journal` that queries rows. The SQL has ``?`` for each value.

    A backend sets `dialect` and implements `_ask`.
    """

    dialect: ClassVar[Dialect]

    @abstractmethod
    def _ask(self, sql: str, *values: Any, effort: Effort = "page") -> list[tuple[Any, ...]]:
        """Return all rows of the answer to ``sql``. Raise `JournalError`."""

    def row(self, seq: int) -> Row | None:
        return self._one("WHERE r.seq=?", seq)

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        bounds = (after, _NO_BOUND if until is None else until, limit)
        return self._rows("WHERE r.seq>? AND r.seq<=? ORDER BY r.seq LIMIT ?", *bounds)

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        clauses, values = self._clauses(only or RowFilter())
        return self._rows(f"WHERE r.seq<? {clauses} ORDER BY r.seq DESC LIMIT ?", before, *values, limit)

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        found: list[Row | None] = [None] * len(paths)
        for number, *fields in self._ask(self._heads_sql, *self.dialect.pack(paths, 2), effort="lookup"):
            found[number - 1] = Row._make(fields)
        return found

    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        heads: list[tuple[Row, str | None] | None] = [None] * len(paths)
        sql = self._heads_sql.replace(" FROM", f",{self.dialect.content} FROM", 1)
        for number, *fields, content in self._ask(sql, *self.dialect.pack(paths, 2)):
            heads[number - 1] = Row._make(fields), decode_content(content)
        return heads

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        return next(iter(self.notes(zone, path, actor, tool, limit=1)), None)

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        found: list[Row | None] = [None] * len(keys)
        for number, *fields in self._ask(self._notes_sql, *self.dialect.pack(keys, 4), effort="lookup"):
            found[number - 1] = Row._make(fields)
        return found

    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        found: list[Row | None] = [None] * (len(paths) + len(keys))
        values = (*self.dialect.pack(paths, 2), *self.dialect.pack(keys, 4))
        for is_note, number, *fields in self._ask(self._heads_and_notes_sql, *values, effort="lookup"):
            found[len(paths) * is_note + number - 1] = Row._make(fields)
        return found[: len(paths)], found[len(paths) :]

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        return self._one("WHERE r.zone=? AND r.path=? AND r.version=?", zone, path, version)

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        bounds = (after_version, _NO_BOUND, _NO_BOUND if limit is None else limit)
        return self._rows(_IS_VERSION_OF, zone, path, *bounds)

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        bounds = (after, _NO_BOUND if until is None else until, limit)
        found = self._ask(self.dialect.select_with_content + _IS_VERSION_OF, zone, path, *bounds)
        return [(Row._make(fields[:-1]), decode_content(fields[-1])) for fields in found]

    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        if zones is not None and not zones:
            return []
        of_zones = "" if zones is None else f" AND r.zone IN ({','.join('?' * len(zones))})"
        # ``+`` keeps SQLite from reading the index of all versions instead of the rows in the range. Path
        # comes first because sorting is fastest by the column with the most differences.
        found = self._ask(
            "SELECT r.zone,r.path,r.actor,min(r.version),max(r.version),max(r.seq),count(*)"
            f" FROM {self.dialect.schema}rows AS r"
            f" WHERE r.seq>? AND r.seq<=? AND +r.version IS NOT NULL{of_zones}"
            " GROUP BY r.path,r.zone,r.actor",
            *(after, until, *(zones or ())),
            effort="scan",
        )
        return join_groups(map(VersionGroup._make, found))

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        until = None if before is None else before - 1
        return self._newest("r.zone=? AND r.path=? AND r.outcome<>'ok'", (zone, path), after, until, limit)

    def notes(
        self,
        zone: Zone,
        path: str,
        actor: str,
        tool: str,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        where = f"r.zone=? AND r.path=? AND r.actor=? AND r.tool=? AND {_IS_NOTE}"
        return self._newest(where, (zone, path, actor, tool), after, until, limit)

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._newest("r.topic=?", (name,), after, until, limit)

    def newest_of_topics(self, prefix: str) -> list[Row]:
        newest = f"SELECT max(seq) FROM {self.dialect.schema}rows WHERE topic>=? AND topic<? GROUP BY topic"
        return self._rows(f"WHERE r.seq IN ({newest}) ORDER BY r.seq", prefix, end_of_prefix(prefix))

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest("r.actor=? AND r.call=?", (actor, call), 0, None, None)

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        schema = self.dialect.schema
        found = self._ask(
            f"SELECT {_OF_ROW} FROM {schema}open_items AS item JOIN {schema}rows AS r ON r.seq=item.seq"
            " WHERE item.zone=? AND item.holder=? ORDER BY item.path",
            *(zone, holder),
        )
        return [Row._make(fields) for fields in found]

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(f"r.zone=? AND r.path=? AND {_IS_SETTLING}", (zone, path), after, None, limit)

    def content(self, seq: int) -> str | None:
        # A forged row can have a content that its checksum does not cover. Such a content is ignored.
        sql = (
            f"SELECT {self.dialect.content} FROM {self.dialect.schema}rows AS r"
            " WHERE r.seq=? AND r.sha256 IS NOT NULL"
        )
        found = self._ask(sql, seq, effort="lookup")
        return decode_content(found[0][0]) if found else None

    @cached_property
    def _heads_sql(self) -> str:
        """The head of each path of a batch of (zone, path), with its position in the batch."""
        head = self.dialect.head.format(zone="asked.zone", path="asked.path")
        return (
            f"SELECT asked.n,{_OF_ROW} FROM {self.dialect.asked(('zone', 'path'))}"
            f" JOIN {self.dialect.schema}rows AS r ON r.seq={head}"
        )

    @cached_property
    def _notes_sql(self) -> str:
        """The newest note for each of a batch of (zone, path, actor, tool), with its position in the
        batch."""
        schema = self.dialect.schema
        return (
            f"SELECT asked.n,{_OF_ROW} FROM {self.dialect.asked(('zone', 'path', 'actor', 'tool'))}"
            f" JOIN {schema}rows AS r ON r.seq=(SELECT note.seq FROM {schema}rows AS note"
            " WHERE note.zone=asked.zone AND note.path=asked.path AND note.actor=asked.actor"
            " AND note.tool=asked.tool AND note.version IS NULL AND note.outcome='ok'"
            " ORDER BY note.seq DESC LIMIT 1)"
        )

    @cached_property
    def _heads_and_notes_sql(self) -> str:
        """The queries of `_heads_sql` and `_notes_sql` as one query. The first column says whether a row is a
        note."""
        questions = enumerate((self._heads_sql, self._notes_sql))
        return " UNION ALL ".join(
            sql.replace("SELECT", f"SELECT {is_note},", 1) for is_note, sql in questions
        )

    def _newest(
        self, where: str, values: tuple[str, ...], after: int, until: int | None, limit: int | None
    ) -> list[Row]:
        """Return the rows that meet the condition ``where``, with ``after`` < seq ≤ ``until``, newest
        first."""
        bounds = (after, _NO_BOUND if until is None else until, _NO_BOUND if limit is None else limit)
        return self._rows(
            f"WHERE {where} AND r.seq>? AND r.seq<=? ORDER BY r.seq DESC LIMIT ?",
            *(*values, *bounds),
            effort="lookup" if limit == 1 else "page",
        )

    def _rows(self, where: str, *values: Any, effort: Effort = "page") -> list[Row]:
        return [
            Row._make(fields) for fields in self._ask(self.dialect.select + where, *values, effort=effort)
        ]

    def _one(self, where: str, *values: Any) -> Row | None:
        return next(iter(self._rows(where, *values, effort="lookup")), None)

    def _clauses(self, only: RowFilter) -> tuple[str, list[str | int]]:
        """Return the conditions of ``only`` as SQL that begins with AND, and their values."""
        find = self.dialect.find
        # lower() folds ASCII letters only, in SQLite and in PostgreSQL's collation C.
        text = "lower(r.actor||'\n'||r.tool||'\n'||r.path||'\n'||r.error||'\n'||r.message)"
        conditions = (
            ("r.actor=?", only.actor),
            ("r.zone=?", only.zone),
            ("r.tool=?", only.tool),
            (f"{_OUTCOME}=?", only.outcome),
            (f"{find}(r.path,?)>0", only.path),
            (f"{find}({text},?)>0", None if only.text is None else ascii_lower(only.text)),
            ("r.seq>?", only.after),
            ("r.time>=?", only.since),
        )
        asked = [(clause, value) for clause, value in conditions if value is not None]
        clauses = "".join(f" AND {clause}" for clause, _ in asked)
        return clauses + ("" if only.steps else _IS_NO_STEP), [value for _, value in asked]


class VersionGroup(NamedTuple):
    """The versions of a path by one actor: the first and the last version, the row of the last, and their
    number."""

    zone: Zone
    path: str
    actor: str
    first: int
    last: int
    seq: int
    versions: int


def join_groups(groups: Iterable[VersionGroup]) -> list[ChangedPath]:
    """Return the paths of ``groups``, sorted by zone and path. Each actor of a path has one group."""
    found: dict[tuple[Zone, str], list[VersionGroup]] = {}
    for group in groups:
        found.setdefault((group.zone, group.path), []).append(group)
    changed = []
    for (zone, path), parts in sorted(found.items(), key=lambda item: (item[0][0], item[0][1].encode())):
        parts.sort(key=lambda part: part.first)
        last = max(parts, key=lambda part: part.seq)
        actors = tuple((part.actor, part.versions) for part in parts)
        changed.append(ChangedPath(zone, path, parts[0].first, last.last, last.seq, actors))
    return changed


def decode_content(data: bytes | None) -> str | None:
    """Return the content of a row, None if it has none.

    Raise `JournalDamaged` if the bytes are not UTF-8. Damaged bytes are not replaced, because the result
    would not be the written content.
    """
    try:
        return None if data is None else bytes(data).decode()
    except UnicodeDecodeError as error:
        raise JournalDamaged from error
