"""The embedded journal: one SQLite file in WAL mode.

Compare-and-swap is the unique index on (zone, path, version): two processes cannot both commit a
version. One commit is one transaction and one sync. Contents over 64 KB are stored once, by SHA-256.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Final

from watchroom import validation
from watchroom.errors import JournalBusy, JournalDamaged, JournalError
from watchroom.journal.damage import decode_content, decode_damaged, despite_damage
from watchroom.journal.protocol import Damage, RowFilter
from watchroom.journal.queries import (
    CONTENT,
    HEAD,
    INSERT,
    LARGE_CONTENT,
    NOTES,
    OPEN_ITEMS,
    SELECT,
    SETTLED,
    VERSION,
    VERSIONS,
    filter_clauses,
    find_head,
    find_heads,
)
from watchroom.journal.schema import migrate
from watchroom.model import (
    ON_DISK,
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
_MOST_HEADS: Final = 256
_NOT_DECODED: Final = "Could not decode to UTF-8"
"""How Python's error begins for a text that is none; it has no code of SQLite's."""
_log = logging.getLogger("watchroom")


class SqliteJournal:
    """`Journal` on the SQLite file at ``path``, made if missing. May be used from any thread.

    Raises `JournalTooNew` if a newer Watchroom wrote the file, `JournalError` if it is no journal.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = Lock()
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._synchronous = ""
        self._text_factory: Callable[[bytes], str] = str
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

    @despite_damage
    def append(self, drafts: Sequence[Draft]) -> list[Appended]:
        durable = any(isinstance(draft, Write) or draft.durable for draft in drafts)
        with self._lock, _translated():
            self._writer.text_factory = self._text_factory
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
        found = self._writer.execute(HEAD, (draft.zone, draft.path)).fetchone()
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
            sha256=None if data is None else validation.sha256(data),
            size=None if data is None else len(data),
            detail_json=detail,
        )
        self._store(row, draft.content)
        return Appended(row, head)

    def _store(self, row: Row, content: str | None) -> None:
        if content is not None and row.size is not None and row.size > INLINE_BYTES:
            self._writer.execute("INSERT OR IGNORE INTO contents VALUES (?,?)", (row.sha256, content))
            content = None
        self._writer.execute(INSERT, (*row, content))

    def _blocker(self, zone: Zone, path: str) -> str | None:
        """A live file at a folder of ``path``, or inside ``path``: both cannot be on one disk."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            found = self._writer.execute(HEAD, (zone, above)).fetchone()
            if found and not Row._make(found).deleted:
                return above
        after: bytes | None = None
        while True:
            heads, after = find_heads(self._writer, zone, path + "/", after, None, _MOST_HEADS)
            blocker = next((row.path for row in heads if not row.deleted), None)
            if blocker is not None or after is None:
                return blocker

    def last_seq(self) -> int:
        with self._reader() as reader:
            return int(reader.execute("SELECT ifnull(max(seq),0) FROM rows").fetchone()[0])

    @despite_damage
    def seq_at(self, time_ns: int) -> int:
        low, high = 0, self.last_seq()
        with self._reader() as reader:
            while low < high:
                middle = (low + high + 1) // 2
                (found,) = reader.execute("SELECT time FROM rows WHERE seq=?", (middle,)).fetchone()
                low, high = (middle, high) if found <= time_ns else (low, middle - 1)
        return low

    @despite_damage
    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        bound = "AND seq<=?" if until is not None else ""
        values = (after, limit) if until is None else (after, until, limit)
        with self._reader() as reader:
            found = reader.execute(f"{SELECT} WHERE seq>? {bound} ORDER BY seq LIMIT ?", values)
            return [Row._make(fields) for fields in found]

    @despite_damage
    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        clauses, values = filter_clauses(only or RowFilter())
        sql = f"{SELECT} WHERE seq<? {clauses} ORDER BY seq DESC LIMIT ?"
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(sql, (before, *values, limit))]

    @despite_damage
    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        with self._reader() as reader:
            return find_head(reader, zone, path, as_of)

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        return self._one(VERSION, zone, path, version)

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        after: bytes | None = None
        most = 1
        while True:
            found, after = self._heads_after(zone, prefix, after, as_of, most)
            yield from found
            if after is None:
                return
            most = min(most * 4, _MOST_HEADS)

    @despite_damage
    def _heads_after(
        self, zone: Zone, prefix: str, after: bytes | None, as_of: int | None, most: int
    ) -> tuple[list[Row], bytes | None]:
        """The heads of at most so many paths, and the path to go on from, None at the end."""
        with self._reader() as reader:
            return find_heads(reader, zone, prefix, after, as_of, most)

    @despite_damage
    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        sql = f"{SELECT} WHERE zone=? AND path=? AND version>? ORDER BY version LIMIT ?"
        with self._reader() as reader:
            found = reader.execute(sql, (zone, path, after_version, -1 if limit is None else limit))
            return [Row._make(fields) for fields in found]

    @despite_damage
    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        last = sys.maxsize if until is None else until
        with self._reader() as reader:
            found = reader.execute(VERSIONS, (zone, path, after, last, limit))
            return [(Row._make(fields[:-1]), decode_content(fields[-1])) for fields in found]

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
        return self._newest(NOTES, (zone, path, actor, tool), after, until, limit)

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._newest("topic=?", (name,), after, until, limit)

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest("actor=? AND call=?", (actor, call), 0, None, None)

    @despite_damage
    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(OPEN_ITEMS, (zone, holder))]

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(f"zone=? AND path=? AND {SETTLED}", (zone, path), after, None, limit)

    def content(self, seq: int) -> str | None:
        with self._reader() as reader:
            found = reader.execute(CONTENT, (seq,)).fetchone()
            if found is None or found[0] is None:
                return None
            if found[2] is None and found[1] > INLINE_BYTES:
                found = reader.execute(LARGE_CONTENT, found[:1]).fetchone()
            return decode_content(found[2]) if found else None

    @despite_damage
    def problems(self) -> list[Damage]:
        from watchroom.journal.check import problems

        with self._reader() as reader, _translated():
            return problems(reader)

    @property
    def tolerates_damage(self) -> bool:
        """Whether U+FFFD is read for the bytes of a damaged text; `problems` names the rows."""
        return self._text_factory is not str

    def tolerate_damage(self) -> None:
        """Read so from now on."""
        if not self.tolerates_damage:
            _log.error("%s holds damaged texts: verify names their rows", self._path)
        self._text_factory = decode_damaged

    def close(self) -> None:
        with self._lock:
            self._writer.close()
            while True:
                try:
                    self._readers.get_nowait().close()
                except Empty:
                    return

    @despite_damage
    def _newest(
        self, where: str, values: tuple[str, ...], after: int, until: int | None, limit: int | None
    ) -> list[Row]:
        sql = f"{SELECT} WHERE {where} AND seq>? AND seq<=? ORDER BY seq DESC LIMIT ?"
        bounds = (after, sys.maxsize if until is None else until, -1 if limit is None else limit)
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(sql, (*values, *bounds))]

    @despite_damage
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
        reader.text_factory = self._text_factory
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
        sha256=draft.sha256 if data is None else validation.sha256(data),
        size=draft.size if data is None else len(data),
        detail_json=detail,
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise JournalBusy(seconds=_BUSY_SECONDS) from error
        if str(error).startswith(_NOT_DECODED):
            raise JournalDamaged from error
        raise JournalError(reason=str(error)) from error
