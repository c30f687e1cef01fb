"""Appends rows to the SQLite file. One thread of one process appends at a time."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from threading import Lock
from typing import Final

from watchroom.errors import JournalError, JournalReplaced, OutcomeUnknown, WatchroomError
from watchroom.kernel.journal.sqlite.journal_files import JournalFiles, abandon, is_retired, restore_journal
from watchroom.kernel.journal.sqlite.queries import INSERT, LAST, LOOK_UP, find_head, find_heads, look_up_few
from watchroom.kernel.rules import append as rules
from watchroom.model import Appended, Draft, Row, Write, Zone
from watchroom.platform import Platform
from watchroom.platform.process_lock import ProcessLock

INLINE_BYTES: Final = 64 * 1024
"""Maximum bytes of a content that is stored in its row."""
_FEW: Final = 6
"""Maximum number of paths for which `look_up_few` is used. SQLite caches a statement for each number of
paths."""
MAX_HEADS: Final = 256
"""Maximum number of heads that are read at a time."""
_CHECK_SECONDS: Final = 0.25
"""Seconds between two checks by readers that the files are in place."""
_OF_SYNC: Final = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
"""Errors after which recovery may or may not find the commit in the write-ahead log."""
_OF_DISK: Final = _OF_SYNC | {sqlite3.SQLITE_IOERR_WRITE}
"""Errors after which a commit is retried once."""
_log = logging.getLogger("watchroom")


class SqliteWriter:
    """Appends to the journal at ``path``. May be used from any thread.

    The file lock ``lock_path`` is fair: processes append in the order of their requests. SQLite's own lock is
    polled, which favors the process that polls most often. Each commit writes to the lock file, which wakes
    waiting readers.

    - ``connect``: returns a connection for writing to a journal with the newest schema.
    - ``on_reopened``: called after the journal was opened again because its files had been displaced.
    - ``is_guarded``: whether to check before each commit that the files are in place.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        path: str,
        lock_path: str,
        platform: Platform,
        on_reopened: Callable[[], None],
        *,
        is_guarded: bool,
    ) -> None:
        self._connect = connect
        self._journal_path = path
        self._path = lock_path
        self._platform = platform
        self._on_reopened = on_reopened
        self._turn = Lock()
        self._lock: ProcessLock | None = None
        self._is_closed = False
        self._is_guarded = is_guarded
        self._checked = 0.0
        self._replaced: JournalReplaced | None = None
        self._open()

    def _open(self) -> None:
        self._connection = self._connect()
        self._synchronous = ""
        # On macOS a plain sync returns before the drive has written. Elsewhere this has no effect.
        self._connection.execute("PRAGMA fullfsync=1")
        self._files = JournalFiles(self._journal_path) if self._is_guarded else None

    def append(
        self, drafts: Sequence[Draft], text_factory: Callable[[bytes], str], all_or_nothing: bool
    ) -> list[Appended]:
        """Append ``drafts`` in one transaction. ``text_factory``: decodes the texts that are read.

        Raise `WorkspaceLocked`, `JournalError`, errors of SQLite, and `OutcomeUnknown` if the disk failed
        during a sync. With ``all_or_nothing``, raise `HeadsMoved` if a draft would be refused.
        """
        with self._locked() as lock:
            self._connection.text_factory = text_factory
            durable = any(isinstance(draft, Write) or draft.durable for draft in drafts)
            self.synchronise("FULL" if durable else "NORMAL")
            try:
                appended, newest = self._append(drafts, all_or_nothing)
            except sqlite3.OperationalError as error:
                if _code(error) not in _OF_DISK:
                    raise
                appended, newest = self._append_again(drafts, all_or_nothing, error)
            if newest is not None:
                _announce(lock, newest)
        return appended

    def synchronise(self, mode: str) -> None:
        """Set SQLite's sync mode for the next commits."""
        if mode != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous={mode}")
            self._synchronous = mode

    def borrow(self) -> sqlite3.Connection | None:
        """Return the connection for reading until `give_back`, None if it is in use.

        Its cache has the pages that were just written.
        """
        if not self._turn.acquire(blocking=False):
            return None
        if self._is_closed:
            self._turn.release()
            return None
        return self._connection

    def give_back(self) -> None:
        """Release the connection returned by `borrow`."""
        self._turn.release()

    def check_files(self) -> None:
        """Restore the journal if its files were displaced. Checks at most every `_CHECK_SECONDS`.

        Raise `JournalReplaced`, `WorkspaceLocked`, `JournalError`.
        """
        now = time.monotonic()
        if self._files is None or now < self._checked + _CHECK_SECONDS:
            return
        self._checked = now
        if not self._files.are_in_place():
            with self._locked():
                pass

    def close(self) -> None:
        """Close the journal and the lock. If the journal's files were displaced, restore it first."""
        with ExitStack() as stack:
            is_displaced = self._files is not None and not self._files.are_in_place()
            if is_displaced and os.path.isdir(os.path.dirname(self._journal_path)):
                try:
                    with self._locked():
                        pass
                except (WatchroomError, sqlite3.Error, OSError):
                    _log.exception("the journal could not be put back")
            stack.enter_context(self._turn)
            self._is_closed = True
            if self._lock is not None:
                stack.callback(self._lock.close)
                self._lock = None
            if self._files is None or self._files.are_in_place():
                self._connection.close()
            else:
                _log.warning("%s was removed or replaced while it was in use", self._journal_path)
                abandon(self._connection)

    @contextmanager
    def _locked(self) -> Iterator[ProcessLock]:
        """Hold the lock of threads, then the lock of processes, with the journal's files in place."""
        with self._turn:
            if self._lock is None:
                try:
                    self._lock = ProcessLock(self._path, self._platform)
                except OSError as error:
                    raise self._lock_error(error) from error
            try:
                self._lock.acquire()
            except FileNotFoundError as error:
                # The folder was removed together with the lock.
                if self._files is not None and not self._files.are_in_place():
                    self._restore(self._files)
                raise self._lock_error(error) from error
            try:
                if self._files is not None and not self._files.are_in_place():
                    self._restore(self._files)
                yield self._lock
            finally:
                self._lock.release()

    def _lock_error(self, error: OSError) -> JournalError:
        return JournalError(reason=f"{os.path.basename(self._path)}: {error.strerror}")

    def _restore(self, files: JournalFiles) -> None:
        if self._replaced is not None:
            raise self._replaced
        if self._is_closed or is_retired(self._connection):
            # If the journal was moved, a trigger refuses the next row.
            return
        try:
            restore_journal(self._connection, self._journal_path, files)
        except JournalReplaced as error:
            self._replaced = error
            raise
        except OSError as error:
            name = os.path.basename(self._journal_path)
            raise JournalError(reason=f"{name} could not be put back: {error}") from error
        abandon(self._connection)
        self._open()
        self._on_reopened()

    def _append(self, drafts: Sequence[Draft], all_or_nothing: bool) -> tuple[list[Appended], Row | None]:
        """Return the outcomes of the drafts, and the newest of the new rows."""
        if len(drafts) > 1 or all_or_nothing or _is_large(drafts[0]):
            return self._append_all(drafts, all_or_nothing)
        # One row needs no transaction: it is enough that its number is still free.
        try:
            appended, new = self._decide(drafts, all_or_nothing=False)
            for row, content in new:
                self._connection.execute(INSERT, (*row, content))
        except sqlite3.IntegrityError:
            # A process that does not use the lock has written after the heads were read.
            return self._append_all(drafts, all_or_nothing)
        return appended, new[-1][0] if new else None

    def _append_again(
        self, drafts: Sequence[Draft], all_or_nothing: bool, before: sqlite3.OperationalError
    ) -> tuple[list[Appended], Row | None]:
        """Call `_append` after the disk failed a commit.

        Unsynced data may be in the write-ahead log, where recovery would treat it as a commit. After the
        second write, it really is a commit.
        """
        try:
            return self._append(drafts, all_or_nothing)
        except sqlite3.OperationalError as error:
            if {_code(before), _code(error)} & _OF_SYNC:
                raise OutcomeUnknown(reason=str(error)) from error
            raise

    def _append_all(self, drafts: Sequence[Draft], all_or_nothing: bool) -> tuple[list[Appended], Row | None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            appended, new = self._decide(drafts, all_or_nothing)
            for row, content in new:
                self._insert(row, content)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return appended, new[-1][0] if new else None

    def _decide(
        self, drafts: Sequence[Draft], all_or_nothing: bool
    ) -> tuple[list[Appended], list[tuple[Row, str | None]]]:
        """Return the outcomes of the drafts, and the new rows with their contents."""
        found = _Found(self._connection, drafts)
        now = max(time.time_ns(), found.last_time)
        appended = rules.append(drafts, found, found.last, now, all_or_nothing=all_or_nothing)
        last = found.last
        new: list[tuple[Row, str | None]] = []
        for draft, (row, _) in zip(drafts, appended, strict=True):
            # A smaller number belongs to an existing row with the same key.
            if row.seq > last:
                last = row.seq
                new.append((row, draft.content))
        return appended, new

    def _insert(self, row: Row, content: str | None) -> None:
        if content is not None and row.size is not None and row.size > INLINE_BYTES:
            self._connection.execute("INSERT OR IGNORE INTO contents VALUES (?,?)", (row.sha256, content))
            content = None
        self._connection.execute(INSERT, (*row, content))


class _Found:
    """`rules.Heads` of the journal, read with one query."""

    def __init__(self, connection: sqlite3.Connection, drafts: Sequence[Draft]) -> None:
        self._connection = connection
        self._heads: dict[tuple[Zone, str], Row] = {}
        self._with_files: set[tuple[Zone, str]] = set()
        self._keyed: dict[tuple[str, str], Row] = {}
        self.last = self.last_time = 0
        heads, folders, keys = _asked(drafts)
        if not heads and not keys:
            self.last, self.last_time = connection.execute(LAST).fetchone() or (0, 0)
            return
        values: list[str]
        if len(heads) <= _FEW and len(folders) <= 1 and not keys:
            sql = look_up_few(len(heads), len(folders))
            values = [*chain.from_iterable(heads), *chain.from_iterable(folders)]
        else:
            sql = LOOK_UP
            values = [json.dumps(list(each), ensure_ascii=False) for each in (heads, folders, keys)]
        for kind, *fields in connection.execute(sql, values).fetchall():
            if kind == "last":
                self.last, self.last_time = fields[:2]
                continue
            row = Row._make(fields)
            if kind == "head":
                self._heads[row.zone, row.path] = row
            elif kind == "folder":
                self._with_files.add((row.zone, row.path))
            else:
                self._keyed[row.actor, str(row.detail[rules.KEY])] = row

    def head(self, zone: Zone, path: str) -> Row | None:
        return self._heads.get((zone, path))

    def live_below(self, zone: Zone, path: str) -> Iterator[str]:
        if (zone, path) not in self._with_files:
            return
        after: bytes | None = None
        while True:
            heads, after = find_heads(self._connection, zone, path + "/", after, None, MAX_HEADS)
            yield from (head.path for head in heads if not head.deleted)
            if after is None:
                return

    def appended(self, actor: str, key: str) -> Appended | None:
        row = self._keyed.get((actor, key))
        if row is None:
            return None
        return Appended(row, find_head(self._connection, row.zone, row.path, row.seq - 1))


def _asked(
    drafts: Sequence[Draft],
) -> tuple[dict[tuple[Zone, str], None], dict[tuple[Zone, str], None], dict[tuple[str, str], None]]:
    """Return the lookups that the append rule needs for ``drafts``, without duplicates:

    - paths (zone, path) whose heads it needs.
    - folders (zone, path) that may have files.
    - keys (actor, key) that may have been used.
    """
    heads: dict[tuple[Zone, str], None] = {}
    folders: dict[tuple[Zone, str], None] = {}
    keys: dict[tuple[str, str], None] = {}
    for draft in drafts:
        if draft.key:
            keys[draft.actor, draft.key] = None
        if isinstance(draft, Write):
            zone, path = draft.zone, draft.path
            heads[zone, path] = None
            if rules.is_blockable(draft):
                folders[zone, path] = None
                for above in rules.folders_above(path):
                    heads[zone, above] = None
            for condition in draft.conditions:
                heads[condition.zone, condition.path] = None
    return heads, folders, keys


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's extended code of ``error``, None if Python raised it for a text that is not UTF-8."""
    return getattr(error, "sqlite_errorcode", None)


def _is_large(draft: Draft) -> bool:
    # A character has at most four bytes in UTF-8.
    return draft.content is not None and len(draft.content) * 4 > INLINE_BYTES


def _announce(lock: ProcessLock, newest: Row) -> None:
    try:
        lock.set_text(f"{newest.seq} {newest.time}")
    except OSError:
        # The rows are committed. Readers check again after `BACKSTOP_SECONDS`.
        _log.exception("row %d could not be announced", newest.seq)


def last_announced_time(path: str) -> int:
    """Return the time of the newest row in the lock file at ``path``, in nanoseconds since the epoch, or
    0."""
    try:
        with open(path, "rb") as file:
            fields = file.readline(100).split()
    except OSError:
        return 0
    return int(fields[1]) if len(fields) == 2 and fields[1].isdigit() else 0
