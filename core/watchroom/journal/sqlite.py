"""The embedded journal: one SQLite file in WAL mode.

Compare-and-swap is the unique index on (zone, path, version): two processes cannot both commit a
version. One commit is one transaction and one sync. Contents over 64 KB are stored once, by SHA-256.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Final

from watchroom import names
from watchroom.errors import JournalBusy, JournalError
from watchroom.journal.protocol import Damage, RowFilter
from watchroom.journal.schema import migrate
from watchroom.model import (
    DISMISS,
    ON_DISK,
    RESOLVE,
    REVERT,
    UNCHECKED,
    Appended,
    Draft,
    Note,
    Outcome,
    Row,
    Write,
    Zone,
)

INLINE_BYTES: Final = 64 * 1024
"""Contents up to this size stand in their row."""

_BUSY_SECONDS: Final = 10
_CHECKPOINT_PAGES: Final = 1000
_COLUMNS: Final = "seq,time,actor,tool,zone,path,version,base,outcome,error,message,sha256,size,detail"
_SELECT: Final = f"SELECT {_COLUMNS} FROM rows "
_HEAD: Final = _SELECT + "WHERE zone=? AND path=? AND version IS NOT NULL ORDER BY version DESC LIMIT 1"
_VERSION: Final = _SELECT + "WHERE zone=? AND path=? AND version=?"
_VERSIONS: Final = (
    # Not a join: that would look up the large contents for rows that have theirs, and SQLite compares a key
    # with all of the record that it passes, however large.
    f"SELECT {_COLUMNS}, ifnull(content, (SELECT contents.content FROM contents"
    " WHERE contents.sha256=rows.sha256)) FROM rows"
    " WHERE zone=? AND path=? AND version>? AND version<=? ORDER BY version LIMIT ?"
)
_NOTES: Final = "zone=? AND path=? AND actor=? AND tool=? AND version IS NULL AND outcome='ok'"
_OPEN_ITEMS: Final = (
    f"SELECT {','.join(f'rows.{name}' for name in _COLUMNS.split(','))} FROM open_items AS item"
    " CROSS JOIN rows ON rows.seq=item.seq WHERE item.zone=? AND item.holder=? ORDER BY item.path"
)
_INSERT: Final = f"INSERT INTO rows ({_COLUMNS},content) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_NEXT_PATH: Final = (
    "SELECT path FROM rows WHERE zone=? AND path>? AND version IS NOT NULL ORDER BY path, version LIMIT 1"
)
_FIRST_PATH: Final = _NEXT_PATH.replace("path>?", "path>=?")
# As the index has it, so that it is used.
_SETTLED: Final = f"tool IN ('{RESOLVE}', '{DISMISS}', '{REVERT}') AND outcome = 'ok'"


class SqliteJournal:
    """`Journal` on the SQLite file at ``path``, made if missing. May be used from any thread.

    Raises `JournalTooNew` if a newer Watchroom wrote the file, `JournalError` if it is no journal.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = Lock()
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._synchronous = ""
        with _translated():
            self._writer = self._connect()
            try:
                self._prepare()
            except BaseException:
                self._writer.close()
                raise

    def _prepare(self) -> None:
        self._use_wal()
        self._writer.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        self._synchronise("FULL")
        migrate(self._writer)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
        )

    def _use_wal(self) -> None:
        """Of several who make the file at once one is first; SQLite does not have the others wait for it."""
        patience = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._writer.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not is_busy or time.monotonic() > patience:
                    raise
                time.sleep(0.01)

    def append(self, drafts: Sequence[Draft]) -> list[Appended]:
        durable = any(isinstance(draft, Write) or draft.durable for draft in drafts)
        with self._lock, _translated():
            self._synchronise("FULL" if durable else "NORMAL")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                appended = self._insert_all(drafts)
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
        return appended

    def _synchronise(self, mode: str) -> None:
        if mode != self._synchronous:
            self._writer.execute(f"PRAGMA synchronous={mode}")
            self._synchronous = mode

    def _insert_all(self, drafts: Sequence[Draft]) -> list[Appended]:
        seq, last_time = self._writer.execute(
            "SELECT seq, time FROM rows ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0, 0)
        now = max(time.time_ns(), last_time)
        return [self._insert(draft, seq + n, now) for n, draft in enumerate(drafts, start=1)]

    def _insert(self, draft: Draft, seq: int, now: int) -> Appended:
        detail = json.dumps(draft.detail, ensure_ascii=False) if draft.detail else ""
        if isinstance(draft, Note):
            row = _note_row(draft, seq, now, detail)
            self._store(row, draft.content)
            return Appended(row, None)
        found = self._writer.execute(_HEAD, (draft.zone, draft.path)).fetchone()
        head = Row._make(found) if found else None
        current = head.version or 0 if head else 0
        live = head is not None and not head.deleted
        expected_found = draft.expected in (UNCHECKED, current) or (draft.expected == 0 and not live)
        outcome: Outcome = "ok"
        error = ""
        if not expected_found:
            outcome, error = "conflict", "version_conflict"
            refused = {"current": current, "current_author": head.actor if head else ""}
            detail = json.dumps({**(draft.detail or {}), **refused}, ensure_ascii=False)
        elif not live and draft.content is not None and draft.zone != ON_DISK:
            blocker = self._blocker(draft.zone, draft.path)
            if blocker:
                outcome, error, detail = "failed", "path_blocked", json.dumps({"by": blocker})
        data = None if draft.content is None else draft.content.encode()
        row = Row(
            seq=seq,
            time=now,
            actor=draft.actor,
            tool=draft.tool,
            zone=draft.zone,
            path=draft.path,
            version=current + 1 if outcome == "ok" else None,
            base=draft.expected,
            outcome=outcome,
            error=error,
            message=draft.message,
            sha256=None if data is None else names.sha256(data),
            size=None if data is None else len(data),
            detail_json=detail,
        )
        self._store(row, draft.content)
        return Appended(row, head)

    def _store(self, row: Row, content: str | None) -> None:
        if content is not None and row.size is not None and row.size > INLINE_BYTES:
            self._writer.execute("INSERT OR IGNORE INTO contents VALUES (?,?)", (row.sha256, content))
            content = None
        self._writer.execute(_INSERT, (*row, content))

    def _blocker(self, zone: Zone, path: str) -> str | None:
        """A live file at a folder of ``path``, or inside ``path``: both cannot be on one disk."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            found = self._writer.execute(_HEAD, (zone, above)).fetchone()
            if found and not Row._make(found).deleted:
                return above
        for row in _walk_heads(self._writer, zone, path + "/", None):
            if not row.deleted:
                return row.path
        return None

    def last_seq(self) -> int:
        with self._reader() as reader:
            return int(reader.execute("SELECT ifnull(max(seq),0) FROM rows").fetchone()[0])

    def seq_at(self, time_ns: int) -> int:
        low, high = 0, self.last_seq()
        with self._reader() as reader:
            while low < high:
                middle = (low + high + 1) // 2
                (found,) = reader.execute("SELECT time FROM rows WHERE seq=?", (middle,)).fetchone()
                low, high = (middle, high) if found <= time_ns else (low, middle - 1)
        return low

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        bound = "AND seq<=?" if until is not None else ""
        values = (after, limit) if until is None else (after, until, limit)
        with self._reader() as reader:
            found = reader.execute(f"{_SELECT} WHERE seq>? {bound} ORDER BY seq LIMIT ?", values)
            return [Row._make(fields) for fields in found]

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        clauses, values = _filter_clauses(only or RowFilter())
        sql = f"{_SELECT} WHERE seq<? {clauses} ORDER BY seq DESC LIMIT ?"
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(sql, (before, *values, limit))]

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        with self._reader() as reader:
            return _head(reader, zone, path, as_of)

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        return self._one(_VERSION, zone, path, version)

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        with self._reader() as reader:
            yield from _walk_heads(reader, zone, prefix, as_of)

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        sql = f"{_SELECT} WHERE zone=? AND path=? AND version>? ORDER BY version LIMIT ?"
        with self._reader() as reader:
            found = reader.execute(sql, (zone, path, after_version, -1 if limit is None else limit))
            return [Row._make(fields) for fields in found]

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        last = sys.maxsize if until is None else until
        with self._reader() as reader:
            found = reader.execute(_VERSIONS, (zone, path, after, last, limit))
            return [(Row._make(fields[:-1]), fields[-1]) for fields in found]

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        until = None if before is None else before - 1
        return self._newest("zone=? AND path=? AND outcome<>'ok'", (zone, path), after, until, limit)

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        return next(iter(self.notes(zone, path, actor, tool, limit=1)), None)

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
        return self._newest(_NOTES, (zone, path, actor, tool), after, until, limit)

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._newest("topic=?", (name,), after, until, limit)

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest("actor=? AND call=?", (actor, call), 0, None, None)

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(_OPEN_ITEMS, (zone, holder))]

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(f"zone=? AND path=? AND {_SETTLED}", (zone, path), after, None, limit)

    def content(self, seq: int) -> str | None:
        with self._reader() as reader:
            found = reader.execute("SELECT sha256, size, content FROM rows WHERE seq=?", (seq,)).fetchone()
            if found is None or found[0] is None:
                return None
            if found[2] is None and found[1] > INLINE_BYTES:
                found = reader.execute(
                    "SELECT '', 0, content FROM contents WHERE sha256=?", found[:1]
                ).fetchone()
            return str(found[2]) if found and found[2] is not None else None

    def problems(self) -> list[Damage]:
        from watchroom.journal.check import problems

        with self._reader() as reader, _translated():
            return problems(reader)

    def close(self) -> None:
        with self._lock:
            self._writer.close()
            while True:
                try:
                    self._readers.get_nowait().close()
                except Empty:
                    return

    def _newest(
        self, where: str, values: tuple[str, ...], after: int, until: int | None, limit: int | None
    ) -> list[Row]:
        sql = f"{_SELECT} WHERE {where} AND seq>? AND seq<=? ORDER BY seq DESC LIMIT ?"
        bounds = (after, sys.maxsize if until is None else until, -1 if limit is None else limit)
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(sql, (*values, *bounds))]

    def _one(self, sql: str, *values: str | int) -> Row | None:
        with self._reader() as reader:
            found = reader.execute(sql, values).fetchone()
        return Row._make(found) if found else None

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        try:
            reader = self._readers.get_nowait()
        except Empty:
            with _translated():
                reader = self._connect()
                reader.execute("PRAGMA query_only=1")
        try:
            with _translated():
                yield reader
        finally:
            self._readers.put(reader)


def _note_row(draft: Note, seq: int, now: int, detail: str) -> Row:
    data = None if draft.content is None else draft.content.encode()
    return Row(
        seq=seq,
        time=now,
        actor=draft.actor,
        tool=draft.tool,
        zone=draft.zone,
        path=draft.path,
        version=None,
        base=draft.base,
        outcome=draft.outcome,
        error=draft.error,
        message=draft.message,
        sha256=draft.sha256 if data is None else names.sha256(data),
        size=draft.size if data is None else len(data),
        detail_json=detail,
    )


def _head(reader: sqlite3.Connection, zone: Zone, path: str, as_of: int | None) -> Row | None:
    found = reader.execute(_HEAD, (zone, path)).fetchone()
    if found is None:
        return None
    head = Row._make(found)
    if as_of is None or head.seq <= as_of:
        return head
    # Versions of a path are 1, 2, 3 … in the order of their rows, so the one of a moment is found by halving.
    low, high = 0, (head.version or 1) - 1
    best: Row | None = None
    while low < high:
        middle = (low + high + 1) // 2
        row = Row._make(reader.execute(_VERSION, (zone, path, middle)).fetchone())
        if row.seq <= as_of:
            low, best = middle, row
        else:
            high = middle - 1
    return best


def _walk_heads(reader: sqlite3.Connection, zone: Zone, prefix: str, as_of: int | None) -> Iterator[Row]:
    """Hops from path to path along the index: the cost is the number of paths, not of rows."""
    found = reader.execute(_FIRST_PATH, (zone, prefix)).fetchone()
    while found and found[0].startswith(prefix):
        head = _head(reader, zone, found[0], as_of)
        if head:
            yield head
        found = reader.execute(_NEXT_PATH, (zone, found[0])).fetchone()


def _filter_clauses(only: RowFilter) -> tuple[str, list[str | int]]:
    clauses = ""
    values: list[str | int] = []
    for column, value in (
        ("actor", only.actor),
        ("zone", only.zone),
        ("tool", only.tool),
        ("outcome", only.outcome),
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
        clauses += " AND NOT (zone='session' AND outcome='ok' AND actor NOT LIKE 'human:%')"
        clauses += " AND NOT (zone='command' AND tool='command_output')"
    if only.after is not None:
        clauses += " AND seq>?"
        values.append(only.after)
    if only.since is not None:
        clauses += " AND time>=?"
        values.append(only.since)
    return clauses, values


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise JournalBusy(seconds=_BUSY_SECONDS) from error
        raise JournalError(reason=str(error)) from error
