"""The side stores of the embedded journal: leases as locked files, snapshots and blobs in separate databases.

Commits of rows never wait for snapshots or blobs of any size.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from platform import node
from threading import Lock
from typing import Final
from urllib.parse import quote

from watchroom.errors import JournalError
from watchroom.kernel.journal.side_stores import (
    BLOBS_NAME,
    MAX_BLOB_BYTES,
    MIN_COUNTED_BYTES,
    Presence,
    Snapshot,
    excess_blobs,
    excess_snapshots,
    max_snapshots,
)
from watchroom.platform import Platform
from watchroom.platform.process_lock import ProcessLock
from watchroom.validation import sha256

SNAPSHOTS_NAME: Final = "derived.db"
_MAX_LEASE_BYTES: Final = 4096
_SNAPSHOTS: Final = (
    "CREATE TABLE IF NOT EXISTS snapshots("
    "format TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(format, seq))"
)
_BLOBS: Final = """
CREATE TABLE IF NOT EXISTS blobs(
    sha256 TEXT PRIMARY KEY, kept INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS blobs_by_age ON blobs(kept, size);
"""
_KEEP_BLOB: Final = "INSERT INTO blobs VALUES(?,?,?,?) ON CONFLICT(sha256) DO UPDATE SET kept=excluded.kept"
_COUNTED: Final = f"SELECT ifnull(sum(max(size, {MIN_COUNTED_BYTES})), 0) FROM blobs"
_OLDEST_FIRST: Final = "SELECT sha256, size FROM blobs ORDER BY kept"
_AMONG: Final = "SELECT sha256 FROM blobs WHERE sha256 IN (SELECT value FROM json_each(?)) ORDER BY kept"
_log = logging.getLogger("watchroom")


class SideDatabase:
    """A database beside the journal whose data may be lost. May be used from any thread.

    The file is opened for each query, because another process may have removed or replaced it. ``busy``:
    timeout in seconds for locks of other processes. If not ``is_writable``, every change raises
    `JournalError`.
    """

    def __init__(self, path: str, busy: float, *, is_writable: bool) -> None:
        self._path = path
        self._busy = busy
        self._is_writable = is_writable

    def _ask(self, question: str, *values: str | int) -> list[tuple[object, ...]]:
        """Return the answer; empty if the file does not exist or cannot be read."""
        if not os.path.exists(self._path):
            return []
        try:
            with self._connect("mode=ro") as connection:
                return connection.execute(question, values).fetchall()
        except sqlite3.Error as error:
            _log.warning("%s is passed over: %s", self._path, error)
            return []

    def _change(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Call ``change`` with a connection. If the file is damaged, call it again with a new file. Raise
        `JournalError`."""
        if not self._is_writable:
            raise JournalError(reason="the journal was opened to be read only")
        try:
            try:
                with self._connect("mode=rwc") as connection:
                    change(connection)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                _log.warning("%s is made anew: %s", self._path, error)
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(self._path + suffix)
                with self._connect("mode=rwc") as connection:
                    change(connection)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(reason=f"{os.path.basename(self._path)}: {error}") from error

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self._path)))}?{mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=self._busy)) as connection:
            yield connection


class SnapshotDatabase(SideDatabase):
    """`SnapshotStore` in ``folder``."""

    def __init__(self, folder: str, *, is_writable: bool = True) -> None:
        super().__init__(os.path.join(folder, SNAPSHOTS_NAME), 2, is_writable=is_writable)

    def newest(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        question = "SELECT seq, data FROM snapshots WHERE format=? AND seq<=? ORDER BY seq DESC LIMIT 1"
        for seq, data in self._ask(question, form, 2**62 if as_of is None else as_of):
            if isinstance(seq, int) and isinstance(data, bytes):
                return Snapshot(seq, data)
        return None

    def keep(self, form: str, seq: int, data: bytes) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            # A snapshot that is lost in a power failure is written again.
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(_SNAPSHOTS)
            with connection:
                connection.execute("INSERT OR REPLACE INTO snapshots VALUES(?,?,?)", (form, seq, data))
                kept = connection.execute("SELECT seq FROM snapshots WHERE format=? ORDER BY seq", (form,))
                dropped = excess_snapshots([each for (each,) in kept], max_snapshots(len(data)))
                connection.executemany(
                    "DELETE FROM snapshots WHERE format=? AND seq=?", [(form, each) for each in dropped]
                )

        self._change(insert)


class BlobDatabase(SideDatabase):
    """`BlobStore` in ``folder``, with at most ``max_bytes`` bytes."""

    def __init__(self, folder: str, max_bytes: int = MAX_BLOB_BYTES, *, is_writable: bool = True) -> None:
        super().__init__(os.path.join(folder, BLOBS_NAME), 10, is_writable=is_writable)
        self._max_bytes = max_bytes

    def keep(self, blobs: Sequence[bytes]) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            now = time.time_ns()
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_BLOBS)
            with connection:
                for number, data in enumerate(blobs):
                    connection.execute(_KEEP_BLOB, (sha256(data), now + number, len(data), data))
                (counted,) = connection.execute(_COUNTED).fetchone()
                dropped = excess_blobs(connection.execute(_OLDEST_FIRST), counted, self._max_bytes)
                connection.executemany("DELETE FROM blobs WHERE sha256=?", [(each,) for each in dropped])

        self._change(insert)

    def find(self, checksum: str) -> bytes | None:
        found = self._ask("SELECT data FROM blobs WHERE sha256=?", checksum)
        data = found[0][0] if found else None
        return data if isinstance(data, bytes) and sha256(data) == checksum else None

    def kept(self, among: Sequence[str] | None = None) -> list[str]:
        if among is None:
            return [str(found[0]) for found in self._ask("SELECT sha256 FROM blobs ORDER BY kept")]
        return [str(found[0]) for found in self._ask(_AMONG, json.dumps(list(among)))]


class PresenceFolder:
    """`PresenceStore`: each lease is a file in ``folder`` that its process keeps locked. May be used from any
    thread.

    The kernel unlocks the file whenever the process dies. So the death is known immediately, and a reused
    process id cannot forge a lease.
    """

    def __init__(self, folder: str, platform: Platform) -> None:
        self._folder = folder
        self._platform = platform
        self._turn = Lock()
        self._own: ProcessLock | None = None
        self._id = ""
        self._resume = ""

    def hold(self, resume: str = "") -> str:
        if self._id:
            return self._id
        with self._turn:
            if not self._id:
                self._resume = resume
                self._take(secrets.token_hex(6))
        return self._id

    def restore(self) -> None:
        """Hold the lease again if its file was removed. Raise `JournalError`."""
        with self._turn:
            if self._own is not None and not os.path.exists(self._path(self._id)):
                self._own.close()
                self._own = None
                self._take(self._id)

    def _take(self, identity: str) -> None:
        try:
            self._own = self._make(identity)
        except OSError as error:
            raise JournalError(reason=f"{self._folder}: {error.strerror}") from error
        self._id = identity

    def _make(self, identity: str) -> ProcessLock:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(identity)
        # The file has another name until it is locked. Otherwise it would look like the file of a dead
        # process.
        lock = ProcessLock(f"{path}.new", self._platform)
        try:
            lock.acquire()
            about = {"process": os.getpid(), "machine": node(), "since": time.time_ns()}
            with open(f"{path}.new", "r+", encoding="utf-8") as file:
                json.dump({**about, "resume": self._resume}, file)
            os.replace(f"{path}.new", path)
        except BaseException:
            lock.close()
            raise
        return lock

    def all(self) -> list[Presence]:
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        found = (self._read(name) for name in names if "." not in name)
        return [each for each in found if each is not None]

    def _read(self, identity: str) -> Presence | None:
        path = self._path(identity)
        try:
            with open(path, "rb") as file:
                about = json.loads(file.read(_MAX_LEASE_BYTES))
            is_held = identity == self._id or self._is_held(path)
            return Presence(
                identity,
                is_held,
                process=int(about["process"]),
                machine=str(about["machine"]),
                since=int(about["since"]),
                resume=str(about["resume"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            # The lease was released at this moment, or the file is not a lease.
            return None

    def _is_held(self, path: str) -> bool:
        # `ProcessLock` would create the file again if it was removed in the meantime.
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return not self._platform.try_lock(file)
        finally:
            os.close(file)

    def forget(self, lease: str) -> None:
        found = self._read(lease)
        if found is not None and not found.is_alive:
            with suppress(FileNotFoundError):
                os.unlink(self._path(lease))

    def _path(self, identity: str) -> str:
        return os.path.join(self._folder, identity)

    def close(self) -> None:
        """Release the lease of this process."""
        with self._turn:
            if self._own is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(self._id))
                self._own.close()
                self._own = None
