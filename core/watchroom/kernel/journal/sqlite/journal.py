"""The embedded journal: one SQLite file in WAL mode.

The unique index on (zone, path, version) does the compare-and-swap: two processes cannot commit the same
version. One commit is one transaction and one sync. Contents over 64 KB are stored once, by SHA-256.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakSet

from watchroom.errors import DraftRefused, JournalBusy, JournalDamaged, JournalError
from watchroom.kernel.journal.protocol import Changes, Damage, LocalChanges
from watchroom.kernel.journal.sql import Effort, SqlReads
from watchroom.kernel.journal.sqlite.exclusion import KeyedProcessLock
from watchroom.kernel.journal.sqlite.queries import LAST_UNTIL, SQLITE, decode_damaged, find_head, find_heads
from watchroom.kernel.journal.sqlite.schema import migrate
from watchroom.kernel.journal.sqlite.side_stores import BlobDatabase, PresenceFolder, SnapshotDatabase
from watchroom.kernel.journal.sqlite.writer import MAX_HEADS, SqliteWriter, last_announced_time
from watchroom.model import Appended, Draft, Row, Zone
from watchroom.platform import FileWatch, Platform, detect_platform

_BUSY_SECONDS: Final = 10
_CHECKPOINT_PAGES: Final = 1000
_NOT_DECODED: Final = "Could not decode to UTF-8"
"""The beginning of Python's error for a text that is not UTF-8. It has no error code of SQLite."""
_OF_DRAFTS: Final = (
    sqlite3.SQLITE_CONSTRAINT_CHECK,
    sqlite3.SQLITE_CONSTRAINT_NOTNULL,
    sqlite3.SQLITE_TOOBIG,
)
"""Errors that are caused by a refused draft."""
_log = logging.getLogger("watchroom")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def despite_damage(
    method: Callable[Concatenate[SqliteJournal, _P], _T],
) -> Callable[Concatenate[SqliteJournal, _P], _T]:
    """If the method raises `JournalDamaged`, call it again with damage tolerated: one broken row must not
    hide all others.

    Tolerant decoding is 50 % slower, so it is used only when needed.
    """

    @wraps(method)
    def run(self: SqliteJournal, /, *args: _P.args, **options: _P.kwargs) -> _T:
        # Read before the call, because another thread may find the damage at the same moment.
        text_factory = self._text_factory
        try:
            return method(self, *args, **options)
        except JournalDamaged:
            if text_factory is not str:
                raise
            self.tolerate_damage()
            return method(self, *args, **options)

    return run


class SqliteJournal(SqlReads):
    """`Journal` in the SQLite file at ``path``, which is created if it does not exist. May be used from any
    thread.

    ``platform``: the operating system, default: this machine's. Raise `JournalTooNew` if a newer Watchroom
    wrote the file, and `JournalError` if it is not a journal.
    """

    dialect = SQLITE
    _is_writable = True

    def __init__(self, path: str | os.PathLike[str], platform: Platform | None = None) -> None:
        self._platform = platform or detect_platform()
        self._path = os.fspath(path)
        self._lock_path = os.path.splitext(self._path)[0] + ".lock"
        folder = os.path.dirname(self._path)
        self._exclusion = KeyedProcessLock(os.path.join(folder, "exclusive"), self._platform)
        self._claims = KeyedProcessLock(os.path.join(folder, "claims"), self._platform)
        self.presence = PresenceFolder(os.path.join(folder, "presence"), self._platform)
        self.snapshots = SnapshotDatabase(folder, is_writable=self._is_writable)
        self.blobs = BlobDatabase(folder, is_writable=self._is_writable)
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._era = 0
        """The number of times the journal was opened. Readers from an earlier opening are not used again."""
        self._is_closed = False
        self._watches: WeakSet[FileWatch] = WeakSet()
        self._waiting: WeakSet[FileWatch] = WeakSet()
        """The watches to wake after an append of this process."""
        self._waiting_lock = Lock()
        self._text_factory: Callable[[bytes], str] = str
        try:
            self._writer = SqliteWriter(
                self._prepared,
                self._path,
                self._lock_path,
                self._platform,
                self._go_on_reopened,
                is_guarded=self._is_writable,
            )
        except sqlite3.Error as error:
            raise _translated(error) from error

    def _prepared(self) -> sqlite3.Connection:
        """Return a connection for writing, after migrating the schema."""
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
            self._path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
        )

    @property
    def is_shared(self) -> bool:
        return False

    @despite_damage
    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        try:
            appended = self._writer.append(drafts, self._text_factory, all_or_nothing)
        except sqlite3.Error as error:
            raise _translated(error) from error
        with self._waiting_lock:
            for changes in self._waiting:
                changes.wake()
        return appended

    def changes(self, after: int | None = None) -> Changes:
        watch = _watch_appends(self._lock_path, self._platform)
        if watch is not None:
            with self._waiting_lock:
                self._watches.add(watch)
                if watch.polls:
                    # A polling watch would notice appends of this process too late.
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

    def last_seq(self) -> int:
        return int(self._ask("SELECT ifnull(max(seq),0) FROM rows", effort="lookup")[0][0])

    @despite_damage
    def seq_at(self, time_ns: int) -> int:
        low, high = 0, self.last_seq()
        with self._reader() as reader:
            while low < high:
                middle = (low + high + 1) // 2
                # If no row has this number, the previous row is used.
                seq, found = reader.execute(LAST_UNTIL, (middle,)).fetchone() or (0, 0)
                low, high = (middle, high) if found <= time_ns else (low, seq - 1)
            return int((reader.execute(LAST_UNTIL, (low,)).fetchone() or (0,))[0])

    @despite_damage
    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        with self._reader(is_brief=True) as reader:
            return find_head(reader, zone, path, as_of)

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        after: bytes | None = None
        limit = 1
        while True:
            found, after = self._heads_after(zone, prefix, after, as_of, limit)
            yield from found
            if after is None:
                return
            limit = min(limit * 4, MAX_HEADS)

    @despite_damage
    def _heads_after(
        self, zone: Zone, prefix: str, after: bytes | None, as_of: int | None, limit: int
    ) -> tuple[list[Row], bytes | None]:
        """See `find_heads`."""
        with self._reader() as reader:
            return find_heads(reader, zone, prefix, after, as_of, limit)

    @despite_damage
    def problems(self) -> list[Damage]:
        from watchroom.kernel.journal.sqlite.integrity import MANY_ROWS, find_damage_apart, problems

        if self.last_seq() > MANY_ROWS and (found := find_damage_apart(self._path)) is not None:
            return found
        with self._reader() as reader:
            return problems(reader, self._connect)

    def tolerate_damage(self) -> None:
        """Read damaged texts with U+FFFD for damaged bytes from now on. `problems` reports the rows."""
        if self._text_factory is str:
            _log.error("%s holds damaged texts: verify names their rows", self._path)
        self._text_factory = decode_damaged

    def close(self) -> None:
        self._is_closed = True
        with ExitStack() as stack:
            stack.callback(self._close_readers)
            stack.callback(self._writer.close)
            stack.callback(self.presence.close)

    def _close_readers(self) -> None:
        with ExitStack() as stack:
            while True:
                try:
                    stack.callback(self._readers.get_nowait().close)
                except Empty:
                    return

    @despite_damage
    def _ask(self, sql: str, *values: Any, effort: Effort = "page") -> list[tuple[Any, ...]]:
        with self._reader(is_brief=effort == "lookup") as reader:
            return reader.execute(sql, values).fetchall()

    @contextmanager
    def _reader(self, *, is_brief: bool = False) -> Iterator[sqlite3.Cursor]:
        """Open a cursor for reading. If the query ``is_brief``, it may use the writer's connection and delay
        a commit."""
        try:
            self._writer.check_files()
            borrowed = self._writer.borrow() if is_brief else None
            era = self._era
            connection = borrowed or self._idle_reader()
            connection.text_factory = self._text_factory
            cursor = connection.cursor()
            try:
                yield cursor
            finally:
                # A partly read cursor would keep the connection in its old transaction.
                cursor.close()
                if borrowed is not None:
                    self._writer.give_back()
                elif era == self._era:
                    self._readers.put(connection)
                    if self._is_closed:
                        # It was read while another thread closed the journal.
                        self._close_readers()
                else:
                    connection.close()
        except sqlite3.Error as error:
            raise _translated(error) from error

    def _go_on_reopened(self) -> None:
        """Adapt after the journal was opened again because its files had been displaced."""
        self._era += 1
        # Connections in use are closed after use.
        self._close_readers()
        with self._waiting_lock:
            # The watches may watch a lock file that was removed.
            self._waiting.update(self._watches)
        self.presence.restore()

    def _idle_reader(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except Empty:
            reader = self._connect()
            reader.execute("PRAGMA query_only=1")
            return reader


def _watch_appends(path: str, platform: Platform) -> FileWatch | None:
    """Watch the lock file at ``path``, to which each append of any process writes. Raise OSError.

    Return None if the file cannot be created: the medium is read-only or full, so nobody can append.
    """
    if not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return None
    return platform.watch_file(path)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, and retry if another process is creating the file: SQLite does not wait for it."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _translated(error: sqlite3.Error) -> JournalError:
    """Return the `JournalError` for an ``error`` of SQLite."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return JournalBusy(seconds=_BUSY_SECONDS)
    if str(error).startswith(_NOT_DECODED):
        return JournalDamaged()
    if getattr(error, "sqlite_errorcode", None) in _OF_DRAFTS:
        return DraftRefused(reason=str(error))
    return JournalError(reason=str(error))
