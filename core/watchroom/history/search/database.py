"""The index in a separate SQLite file: full-text tables without the texts, which are in the journal.

Each table, called a part, has the rows after the previous part. A full-text table without texts cannot delete
single rows, so the oldest rows are dropped one part at a time.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final, NamedTuple
from urllib.parse import quote

from watchroom.errors import JournalError

INDEX_NAME: Final = "search.db"
FORMAT: Final = 3
"""Increment this if you change which data is indexed, or how. An index with another format is rebuilt."""
MAX_BYTES: Final = 2 * 1024**3
"""Maximum bytes of the file. Above this, the oldest part is dropped."""
PART_BYTES: Final = 256 * 1024**2
"""Maximum bytes (UTF-8) of the texts in one part."""
_BUSY_SECONDS: Final = 2
_CHECK_INSTRUCTIONS: Final = 1000
"""SQLite instructions between two checks of the deadline."""
_TABLES: Final = (
    "CREATE TABLE state(seq INTEGER NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE parts(number INTEGER PRIMARY KEY, first INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "CREATE TABLE kept(seq INTEGER PRIMARY KEY, part INTEGER NOT NULL, text TEXT NOT NULL)",
    "INSERT INTO state VALUES(0, '')",
)
_log = logging.getLogger("watchroom")


class DamagedIndexError(Exception):
    """The index has just been deleted, by another process or because it could not be read."""


class IndexState(NamedTuple):
    """The last indexed row, its ``digest``, and the ``oldest`` indexed row."""

    seq: int = 0
    digest: str = ""
    oldest: int = 1


class IndexedRow(NamedTuple):
    """The indexed data of the row ``seq``.

    - ``text``: the searchable text.
    - ``who``: the tokens of the actor and the zone.
    - ``kept``: the source of excerpts, if it is slow to read from the journal.
    """

    seq: int
    text: str
    who: str
    kept: str = ""


class FoundRows(NamedTuple):
    """The numbers of the found rows, and whether the search stopped at the deadline."""

    rows: list[int]
    is_cut_off: bool = False


class IndexDatabase:
    """The index in ``folder``. Its file is opened for each use, because it may be deleted at any moment."""

    def __init__(self, folder: str, *, max_bytes: int = MAX_BYTES, part_bytes: int = PART_BYTES) -> None:
        self._path = os.path.join(folder, INDEX_NAME)
        self._max_bytes = max_bytes
        self._part_bytes = part_bytes

    @property
    def exists(self) -> bool:
        """Whether the file exists, whatever it contains."""
        return os.path.exists(self._path)

    @contextmanager
    def reading(self) -> Iterator[IndexReader | None]:
        """Yield a reader, None if there is no index yet. Raise `JournalError`, `DamagedIndexError`."""
        if not self.exists:
            yield None
            return
        with self._connect("mode=ro") as connection:
            yield IndexReader(connection) if _is_usable(connection) else None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """Yield a writer to the index; create it if it is missing or has another format. Raise
        `JournalError`, `DamagedIndexError`."""
        try:
            # The folder of a workspace on a server may be missing, if nobody has opened its files here.
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        except OSError as error:
            raise JournalError(reason=f"{INDEX_NAME}: {error.strerror}") from error
        with self._connect("mode=rwc") as connection:
            if not _is_usable(connection) and connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                connection.close()
                self.delete()
                with self.writing() as writer:
                    yield writer
                return
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if not _is_usable(connection):
                with connection:
                    for statement in (*_TABLES, f"PRAGMA user_version={FORMAT}"):
                        connection.execute(statement)
            yield IndexWriter(connection, self._path, self._max_bytes, self._part_bytes)

    def delete(self) -> None:
        """Delete the index, so that it is rebuilt."""
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._path + suffix)

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self._path)))}?{mode}"
        try:
            opened = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)
            with closing(opened) as connection:
                yield connection
        except sqlite3.OperationalError as error:
            if not self.exists:
                # Another process has just deleted it.
                raise DamagedIndexError from error
            raise JournalError(reason=f"{INDEX_NAME}: {error}") from error
        except sqlite3.DatabaseError as error:
            _log.warning("%s is damaged and rebuilt: %s", self._path, error)
            self.delete()
            raise DamagedIndexError from error


class IndexReader:
    """Reads the index through ``connection``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def state(self) -> IndexState:
        """Return the state of the index."""
        return _state_of(self._connection)

    def newest(self, expression: str, after: int, until: int, limit: int, deadline: float) -> FoundRows:
        """Return the newest ``limit`` rows that match ``expression`` with ``after`` < seq ≤ ``until``, newest
        first. Stop at ``deadline`` (by `time.monotonic`)."""
        found: list[int] = []
        self._connection.set_progress_handler(lambda: time.monotonic() >= deadline, _CHECK_INSTRUCTIONS)
        try:
            for number, first in self._parts(until):
                sql = (
                    f"SELECT rowid FROM part_{number} WHERE part_{number} MATCH ?"
                    " AND rowid>? AND rowid<=? ORDER BY rowid DESC LIMIT ?"
                )
                values = (expression, after, until, limit - len(found))
                found += (seq for (seq,) in self._connection.execute(sql, values))
                if len(found) >= limit or first <= after + 1:
                    break
        except sqlite3.OperationalError:
            if time.monotonic() < deadline:
                raise
            return FoundRows(found, is_cut_off=True)
        finally:
            self._connection.set_progress_handler(None, 0)
        return FoundRows(found)

    def best(
        self, expression: str, after: int, until: int, among: int, limit: int, deadline: float
    ) -> FoundRows:
        """Return the best rows for ``expression``, best first: ``limit`` of the ``among`` newest matches."""
        newest = self.newest(expression, after, until, among, deadline)
        if not newest.rows:
            return newest
        ranked: list[tuple[float, int]] = []
        for number, _ in self._parts(until):
            sql = (
                f"SELECT bm25(part_{number}, 1.0, 0.0), -rowid FROM part_{number}"
                f" WHERE part_{number} MATCH ? AND rowid>=? AND rowid<=?"
            )
            ranked += self._connection.execute(sql, (expression, newest.rows[-1], newest.rows[0]))
        return FoundRows([-seq for _, seq in sorted(ranked)[:limit]], newest.is_cut_off)

    def kept(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the kept sources of excerpts of ``rows``, by row."""
        sql = f"SELECT seq, text FROM kept WHERE seq IN ({','.join('?' * len(rows))})"  # marks
        return dict(self._connection.execute(sql, rows))

    def _parts(self, until: int) -> list[tuple[int, int]]:
        """Return the number and first row of each part with rows up to ``until``, newest first."""
        sql = "SELECT number, first FROM parts WHERE first<=? ORDER BY number DESC"
        return self._connection.execute(sql, (until,)).fetchall()


class IndexWriter:
    """Adds to the index through ``connection``.

    - ``path``: the file of the index.
    - ``max_bytes``: the size at which the oldest part is dropped.
    - ``part_bytes``: the size of texts at which a new part begins.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, max_bytes: int, part_bytes: int) -> None:
        self._connection = connection
        self._path = path
        self._max_bytes = max_bytes
        self._part_bytes = part_bytes
        self._file = _identity(path)

    @property
    def is_lost(self) -> bool:
        """Whether the file was deleted after it was opened."""
        return self._file is None or _identity(self._path) != self._file

    def state(self) -> IndexState:
        """Return the state of the index."""
        return _state_of(self._connection)

    def add(self, entries: Sequence[IndexedRow], seq: int, digest: str) -> None:
        """Index ``entries`` in one transaction. The index is then complete up to row ``seq``, whose digest is
        ``digest``."""
        with self._connection:
            if entries:
                number = self._part_for(entries[0].seq)
                self._connection.executemany(
                    f"INSERT INTO part_{number}(rowid, body, who) VALUES(?,?,?)",
                    [each[:3] for each in entries],
                )
                self._connection.executemany(
                    "INSERT INTO kept VALUES(?,?,?)",
                    [(each.seq, number, each.kept) for each in entries if each.kept],
                )
                size = sum(len(each.text.encode()) for each in entries)
                self._connection.execute("UPDATE parts SET bytes=bytes+? WHERE number=?", (size, number))
            self._connection.execute("UPDATE state SET seq=?, digest=?", (seq, digest))
        self._drop_oldest()

    def _part_for(self, first: int) -> int:
        """Return the number of the part for rows from ``first`` on."""
        newest = self._connection.execute(
            "SELECT number, bytes FROM parts ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if newest is not None and newest[1] < self._part_bytes:
            return int(newest[0])
        number = 1 if newest is None else int(newest[0]) + 1
        self._connection.execute(
            f"CREATE VIRTUAL TABLE part_{number} USING fts5(body, who, content='',"
            " tokenize='unicode61 remove_diacritics 2')"
        )
        self._connection.execute("INSERT INTO parts VALUES(?,?,0)", (number, first))
        return number

    def _drop_oldest(self) -> None:
        while _used_bytes(self._connection) > self._max_bytes:
            parts = self._connection.execute("SELECT number FROM parts ORDER BY number LIMIT 2").fetchall()
            if len(parts) < 2:
                return
            with self._connection:
                self._connection.execute(f"DROP TABLE part_{parts[0][0]}")
                self._connection.execute("DELETE FROM parts WHERE number=?", parts[0])
                self._connection.execute("DELETE FROM kept WHERE part=?", parts[0])


def _is_usable(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT)


def _state_of(connection: sqlite3.Connection) -> IndexState:
    sql = "SELECT seq, digest, (SELECT coalesce(min(first), 1) FROM parts) FROM state"
    found = connection.execute(sql).fetchone()
    return IndexState(*found)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
