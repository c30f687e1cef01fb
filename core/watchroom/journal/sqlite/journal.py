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
from contextlib import AbstractContextManager, ExitStack, contextmanager
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Final
from weakref import WeakSet

from watchroom.errors import JournalBusy, JournalDamaged, JournalError
from watchroom.journal.changed_paths import ChangedPath, VersionGroup, join_groups
from watchroom.journal.changes import LocalChanges
from watchroom.journal.protocol import Changes, Damage, NoteKey, Presence, RowFilter
from watchroom.journal.snapshots import Snapshot
from watchroom.journal.sqlite.blobs import BlobDatabase
from watchroom.journal.sqlite.changes import watch_appends
from watchroom.journal.sqlite.counting import CountingConnection
from watchroom.journal.sqlite.damage import decode_content, decode_damaged, despite_damage
from watchroom.journal.sqlite.derived import DerivedDatabase
from watchroom.journal.sqlite.exclusion import KeyedProcessLock
from watchroom.journal.sqlite.presence import PresenceFolder
from watchroom.journal.sqlite.queries import (
    CHANGED,
    CONTENT,
    HEADS_AND_NOTES,
    HEADS_OF,
    HEADS_WITH_CONTENT,
    LARGE_CONTENT,
    LAST_NOTES,
    LAST_UNTIL,
    NEWEST_OF_TOPICS,
    NOTES,
    OPEN_ITEMS,
    ROW,
    SELECT,
    SETTLED,
    VERSION,
    VERSIONS,
    filter_clauses,
    find_head,
    find_heads,
)
from watchroom.journal.sqlite.schema import migrate
from watchroom.journal.sqlite.writer import INLINE_BYTES, MOST_HEADS, Writer, last_announced_time
from watchroom.journal.topics import end_of_prefix
from watchroom.model import Appended, Draft, Row, Zone
from watchroom.platforms import FileWatch, Platform, detect_platform

_BUSY_SECONDS: Final = 10
_CHECKPOINT_PAGES: Final = 1000
_NOT_DECODED: Final = "Could not decode to UTF-8"
"""How Python's error begins for a text that is none; it has no code of SQLite's."""
_log = logging.getLogger("watchroom")


class SqliteJournal:
    """`Journal` on the SQLite file at ``path``, made if missing, on ``platform`` (default: this machine's).
    May be used from any thread.

    Raises `JournalTooNew` if a newer Watchroom wrote the file, `JournalError` if it is no journal.
    """

    _is_writable = True

    def __init__(self, path: str | os.PathLike[str], platform: Platform | None = None) -> None:
        self._platform = platform or detect_platform()
        self._path = os.fspath(path)
        self._lock_path = os.path.splitext(self._path)[0] + ".lock"
        folder = os.path.dirname(self._path)
        self._exclusion = KeyedProcessLock(os.path.join(folder, "exclusive"), self._platform)
        self._claims = KeyedProcessLock(os.path.join(folder, "claims"), self._platform)
        self._presence = PresenceFolder(os.path.join(folder, "presence"), self._platform)
        self._derived = DerivedDatabase(folder)
        self._blobs = BlobDatabase(folder)
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._era = 0
        """Counts how often the journal was opened. Readers of an earlier era are not used again."""
        self._watches: WeakSet[FileWatch] = WeakSet()
        self._waiting: WeakSet[FileWatch] = WeakSet()
        """Those that have to be woken after an append of this process."""
        self._waiting_lock = Lock()
        self._text_factory: Callable[[bytes], str] = str
        with _TRANSLATED:
            self._writer = Writer(
                self._prepared,
                self._path,
                self._lock_path,
                self._platform,
                self._go_on_reopened,
                is_guarded=self._is_writable,
            )

    def _prepared(self) -> sqlite3.Connection:
        """A connection to write with, to a journal of the newest schema."""
        connection = self._connect()
        try:
            _use_wal(connection)
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
            migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_SECONDS,
            factory=CountingConnection,
        )

    @property
    def is_shared(self) -> bool:
        return False

    @property
    def statements(self) -> int:
        """How many statements this thread has run on journals so far."""
        return CountingConnection.count_of_thread()

    @despite_damage
    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        with _TRANSLATED:
            appended = self._writer.append(drafts, self._text_factory, all_or_nothing)
        with self._waiting_lock:
            for changes in self._waiting:
                changes.wake()
        return appended

    def changes(self, after: int | None = None) -> Changes:
        watch = watch_appends(self._lock_path, self._platform)
        if watch is not None:
            with self._waiting_lock:
                self._watches.add(watch)
                if watch.polls:
                    # It does not notice at once what this process does.
                    self._waiting.add(watch)
        changes = watch or LocalChanges()
        if after is not None and self.last_seq() > after:
            changes.wake()
        return changes

    def exclusive(self, key: str) -> AbstractContextManager[None]:
        return self._exclusion.hold(key)

    def claim(self, key: str) -> AbstractContextManager[bool]:
        return self._claims.claim(key)

    def is_claimed(self, key: str) -> bool:
        return self._claims.is_held(key)

    def now(self) -> int:
        return max(time.time_ns(), last_announced_time(self._lock_path))

    def present(self, resume: str = "") -> str:
        return self._presence.present(resume)

    def presences(self) -> list[Presence]:
        return self._presence.all()

    def forget_presence(self, presence: str) -> None:
        self._presence.forget(presence)

    def last_seq(self) -> int:
        with self._reader(is_brief=True) as reader:
            return int(reader.execute("SELECT ifnull(max(seq),0) FROM rows").fetchone()[0])

    @despite_damage
    def seq_at(self, time_ns: int) -> int:
        low, high = 0, self.last_seq()
        with self._reader() as reader:
            while low < high:
                middle = (low + high + 1) // 2
                # There may be no row of this number: the one before it stands for it.
                seq, found = reader.execute(LAST_UNTIL, (middle,)).fetchone() or (0, 0)
                low, high = (middle, high) if found <= time_ns else (low, seq - 1)
            return int((reader.execute(LAST_UNTIL, (low,)).fetchone() or (0,))[0])

    def row(self, seq: int) -> Row | None:
        return self._one(ROW, seq)

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
        with self._reader(is_brief=True) as reader:
            return find_head(reader, zone, path, as_of)

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        return self._each_of(HEADS_OF, paths)

    @despite_damage
    def _each_of(self, sql: str, asked: Sequence[tuple[str, ...]]) -> list[Row | None]:
        """The row that ``sql`` finds for each of what is asked."""
        found: list[Row | None] = [None] * len(asked)
        with self._reader(is_brief=True) as reader:
            for index, *fields in reader.execute(sql, (json.dumps(asked),)):
                found[index] = Row._make(fields)
        return found

    @despite_damage
    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        heads: list[tuple[Row, str | None] | None] = [None] * len(paths)
        with self._reader() as reader:
            for index, *fields, content in reader.execute(HEADS_WITH_CONTENT, (json.dumps(paths),)):
                heads[index] = Row._make(fields), decode_content(content)
        return heads

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
            most = min(most * 4, MOST_HEADS)

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

    @despite_damage
    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        which = "" if zones is None else f" AND zone IN ({','.join('?' * len(zones))})"
        with self._reader() as reader:
            found = reader.execute(CHANGED.format(which), (after, until, *(zones or ())))
            return join_groups(map(VersionGroup._make, found))

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        until = None if before is None else before - 1
        return self._newest("zone=? AND path=? AND outcome<>'ok'", (zone, path), after, until, limit)

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        return next(iter(self.notes(zone, path, actor, tool, limit=1)), None)

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        return self._each_of(LAST_NOTES, keys)

    @despite_damage
    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        if not keys:
            # Most calls ask for no note, and two questions in one cost more than one of them.
            return self.heads_of(paths), []
        found: list[Row | None] = [None] * (len(paths) + len(keys))
        with self._reader(is_brief=True) as reader:
            for is_note, index, *fields in reader.execute(
                HEADS_AND_NOTES, (json.dumps(paths), json.dumps(keys))
            ):
                found[len(paths) * is_note + index] = Row._make(fields)
        return found[: len(paths)], found[len(paths) :]

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

    @despite_damage
    def newest_of_topics(self, prefix: str) -> list[Row]:
        with self._reader() as reader:
            found = reader.execute(NEWEST_OF_TOPICS, (prefix, end_of_prefix(prefix)))
            return [Row._make(fields) for fields in found]

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest("actor=? AND call=?", (actor, call), 0, None, None)

    @despite_damage
    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        with self._reader() as reader:
            return [Row._make(fields) for fields in reader.execute(OPEN_ITEMS, (zone, holder))]

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(f"zone=? AND path=? AND {SETTLED}", (zone, path), after, None, limit)

    def content(self, seq: int) -> str | None:
        with self._reader(is_brief=True) as reader:
            found = reader.execute(CONTENT, (seq,)).fetchone()
            if found is None or found[0] is None:
                return None
            # A row written past the tools can have any size, or none.
            if found[2] is None and (found[1] is None or found[1] > INLINE_BYTES):
                found = reader.execute(LARGE_CONTENT, found[:1]).fetchone()
            return decode_content(found[2]) if found else None

    def snapshot(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        return self._derived.snapshot(form, as_of)

    def keep_snapshot(self, form: str, seq: int, data: bytes) -> None:
        self._derived.keep(form, Snapshot(seq, data))

    def keep_blobs(self, blobs: Sequence[bytes]) -> None:
        self._blobs.keep(blobs)

    def blob(self, checksum: str) -> bytes | None:
        return self._blobs.find(checksum)

    def kept_blobs(self, among: Sequence[str] | None = None) -> list[str]:
        return self._blobs.kept(among)

    @despite_damage
    def problems(self) -> list[Damage]:
        from watchroom.journal.sqlite.integrity import problems
        from watchroom.journal.sqlite.integrity_process import MANY_ROWS, find_damage_apart

        if self.last_seq() > MANY_ROWS and (found := find_damage_apart(self._path)) is not None:
            return found
        with self._reader() as reader:
            return problems(reader, self._connect)

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
        with ExitStack() as stack:
            stack.callback(self._close_readers)
            stack.callback(self._writer.close)
            stack.callback(self._presence.close)

    def _close_readers(self) -> None:
        with ExitStack() as stack:
            while True:
                try:
                    stack.callback(self._readers.get_nowait().close)
                except Empty:
                    return

    @despite_damage
    def _newest(
        self, where: str, values: tuple[str, ...], after: int, until: int | None, limit: int | None
    ) -> list[Row]:
        sql = f"{SELECT} WHERE {where} AND seq>? AND seq<=? ORDER BY seq DESC LIMIT ?"
        bounds = (after, sys.maxsize if until is None else until, -1 if limit is None else limit)
        with self._reader(is_brief=limit == 1) as reader:
            return [Row._make(fields) for fields in reader.execute(sql, (*values, *bounds))]

    @despite_damage
    def _one(self, sql: str, *values: str | int) -> Row | None:
        with self._reader(is_brief=True) as reader:
            found = reader.execute(sql, values).fetchone()
        return Row._make(found) if found else None

    @contextmanager
    def _reader(self, *, is_brief: bool = False) -> Iterator[sqlite3.Cursor]:
        """A cursor to read with. One that ``is_brief`` may hold off a commit for so long."""
        with _TRANSLATED:
            self._writer.check_files()
        borrowed = self._writer.borrow() if is_brief else None
        era = self._era
        connection = borrowed or self._idle_reader()
        connection.text_factory = self._text_factory
        cursor = connection.cursor()
        try:
            with _TRANSLATED:
                yield cursor
        finally:
            # An answer that was not read to its end would keep the connection at what was there then.
            cursor.close()
            if borrowed is not None:
                self._writer.give_back()
            elif era == self._era:
                self._readers.put(connection)
            else:
                connection.close()

    def _go_on_reopened(self) -> None:
        """Go on with a journal that was opened again because its files had been displaced."""
        self._era += 1
        # The others are closed after use.
        self._close_readers()
        with self._waiting_lock:
            # They watch a lock file that may have been removed.
            self._waiting.update(self._watches)
        self._presence.restore()

    def _idle_reader(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except Empty:
            with _TRANSLATED:
                reader = self._connect()
                reader.execute("PRAGMA query_only=1")
            return reader


def _use_wal(connection: sqlite3.Connection) -> None:
    """Of several who make the file at once one is first; SQLite does not have the others wait for it."""
    patience = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not is_busy or time.monotonic() > patience:
                raise
            time.sleep(0.01)


class _Translation:
    """Within, errors of SQLite are raised as ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, sqlite3.Error):
            return
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise JournalBusy(seconds=_BUSY_SECONDS) from error
        if str(error).startswith(_NOT_DECODED):
            raise JournalDamaged from error
        raise JournalError(reason=str(error)) from error


_TRANSLATED: Final = _Translation()
