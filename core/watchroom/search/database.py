"""The index in a SQLite file of its own: full-text tables without the texts, which the journal has.

There are several tables, each for the rows after those of the one before, so that what is oldest goes at one
stroke: of a table without texts no single one can be taken out.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final, NamedTuple
from urllib.parse import quote

from watchroom.errors import JournalError
from watchroom.search.deadline import Deadline

INDEX_NAME: Final = "search.db"
FORMAT: Final = 3
"""Counted up by whoever changes what is indexed, or how: an index of another format is made anew."""
MOST_BYTES: Final = 2 * 1024**3
"""Of the file: after that the oldest rows go."""
PART_BYTES: Final = 256 * 1024**2
"""Of the texts of one table (UTF-8)."""
_BUSY_SECONDS: Final = 2
_CHECK_EVERY: Final = 1000
"""Instructions of SQLite between two looks whether the time is over."""
_TABLES: Final = (
    "CREATE TABLE state(seq INTEGER NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE parts(number INTEGER PRIMARY KEY, first INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "CREATE TABLE kept(seq INTEGER PRIMARY KEY, part INTEGER NOT NULL, text TEXT NOT NULL)",
    "INSERT INTO state VALUES(0, '')",
)
_log = logging.getLogger("watchroom")


class DamagedIndexError(Exception):
    """The index was deleted just now: by somebody, or because it could not be read."""


class IndexState(NamedTuple):
    """Up to which row all are indexed, and the ``digest`` of that row; from which ``oldest`` row on."""

    seq: int = 0
    digest: str = ""
    oldest: int = 1


class Entry(NamedTuple):
    """What is indexed of row ``seq``: its text, and the words of who made it and which zone it concerns.
    ``kept`` is what its excerpts are made from, where the journal cannot tell it at once."""

    seq: int
    text: str
    who: str
    kept: str = ""


class Found(NamedTuple):
    """Rows by number, and whether the time was over before there were no more."""

    rows: list[int]
    is_cut_off: bool = False


class IndexDatabase:
    """The index in ``folder``. Its file is opened anew each time: it may be gone at any moment."""

    def __init__(self, folder: str, *, most_bytes: int = MOST_BYTES, part_bytes: int = PART_BYTES) -> None:
        self._path = os.path.join(folder, INDEX_NAME)
        self._most_bytes = most_bytes
        self._part_bytes = part_bytes

    @property
    def exists(self) -> bool:
        """Whether there is a file, whatever is in it."""
        return os.path.exists(self._path)

    @contextmanager
    def reading(self) -> Iterator[IndexReader | None]:
        """What reads the index, None where there is none yet. Raises `JournalError`, `DamagedIndexError`."""
        if not self.exists:
            yield None
            return
        with self._connect("mode=ro") as connection:
            yield IndexReader(connection) if _is_usable(connection) else None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """What adds to the index, which is made where there is none, or one of another format. Raises
        `JournalError`, `DamagedIndexError`."""
        try:
            # Of a workspace on a server nobody may have opened the files here.
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
            yield IndexWriter(connection, self._path, self._most_bytes, self._part_bytes)

    def delete(self) -> None:
        """Delete the index: it is made anew."""
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
                # Somebody deleted it just now.
                raise DamagedIndexError from error
            raise JournalError(reason=f"{INDEX_NAME}: {error}") from error
        except sqlite3.DatabaseError as error:
            _log.warning("%s is made anew: %s", self._path, error)
            self.delete()
            raise DamagedIndexError from error


class IndexReader:
    """Reads the index by ``connection``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def state(self) -> IndexState:
        """How far the index is."""
        return _state_of(self._connection)

    def newest(self, expression: str, after: int, until: int, limit: int, deadline: Deadline) -> Found:
        """The newest ``limit`` rows that match ``expression`` with ``after`` < seq ≤ ``until``, newest first,
        as far as they are found before ``deadline``."""
        found: list[int] = []
        self._connection.set_progress_handler(deadline.is_over, _CHECK_EVERY)
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
            if not deadline.is_over():
                raise
            return Found(found, is_cut_off=True)
        finally:
            self._connection.set_progress_handler(None, 0)
        return Found(found)

    def best(
        self, expression: str, after: int, until: int, among: int, limit: int, deadline: Deadline
    ) -> Found:
        """The best ``limit`` of the newest ``among`` rows that match ``expression``, the best first."""
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
        return Found([-seq for _, seq in sorted(ranked)[:limit]], newest.is_cut_off)

    def kept(self, rows: Sequence[int]) -> dict[int, str]:
        """What was kept of those of ``rows`` whose text the journal cannot tell at once, by row."""
        sql = f"SELECT seq, text FROM kept WHERE seq IN ({','.join('?' * len(rows))})"  # marks
        return dict(self._connection.execute(sql, rows))

    def _parts(self, until: int) -> list[tuple[int, int]]:
        """The tables with rows up to ``until``, newest first: number and first row of each."""
        sql = "SELECT number, first FROM parts WHERE first<=? ORDER BY number DESC"
        return self._connection.execute(sql, (until,)).fetchall()


class IndexWriter:
    """Adds to the index in the file ``path`` by ``connection``, which takes ``most_bytes`` at most, give or
    take what is added at once; each of its tables is for ``part_bytes`` of texts."""

    def __init__(self, connection: sqlite3.Connection, path: str, most_bytes: int, part_bytes: int) -> None:
        self._connection = connection
        self._path = path
        self._most_bytes = most_bytes
        self._part_bytes = part_bytes
        self._file = _identity(path)

    @property
    def is_lost(self) -> bool:
        """Whether somebody deleted the file meanwhile."""
        return self._file is None or _identity(self._path) != self._file

    def state(self) -> IndexState:
        """How far the index is."""
        return _state_of(self._connection)

    def add(self, entries: Sequence[Entry], seq: int, digest: str) -> None:
        """Index ``entries``, which is all that there is up to row ``seq`` with this ``digest``, in one
        transaction."""
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
        """The number of the table for rows from ``first`` on."""
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
        while _used_bytes(self._connection) > self._most_bytes:
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
