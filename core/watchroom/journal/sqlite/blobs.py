"""The bytes of files that are no texts, in a database of their own beside the journal's: however large they
are, nobody who commits a row waits for them."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final
from urllib.parse import quote

from watchroom.errors import JournalError
from watchroom.journal.blobs import BLOBS_NAME, LEAST_COUNTED, MOST_BYTES, too_many
from watchroom.validation import sha256

_BUSY_SECONDS: Final = 10
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS blobs(
    sha256 TEXT PRIMARY KEY, kept INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS blobs_by_age ON blobs(kept, size);
"""
_KEEP: Final = "INSERT INTO blobs VALUES(?,?,?,?) ON CONFLICT(sha256) DO UPDATE SET kept=excluded.kept"
_COUNTED: Final = f"SELECT ifnull(sum(max(size, {LEAST_COUNTED})), 0) FROM blobs"
_OLDEST: Final = "SELECT sha256, size FROM blobs ORDER BY kept"
_AMONG: Final = "SELECT sha256 FROM blobs WHERE sha256 IN (SELECT value FROM json_each(?)) ORDER BY kept"
_log = logging.getLogger("watchroom")


class BlobDatabase:
    """The blobs in ``folder``, of which at most ``most`` bytes are kept. May be used from any thread.

    Its file is opened anew for each question: another process may have made it anew.
    """

    def __init__(self, folder: str, most: int = MOST_BYTES) -> None:
        self._path = os.path.join(folder, BLOBS_NAME)
        self._most = most

    def keep(self, blobs: Sequence[bytes]) -> None:
        """Keep ``blobs`` as the newest ones; a damaged file is made anew. Raises `JournalError`."""
        try:
            try:
                self._insert(blobs)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                _log.warning("%s is made anew: %s", self._path, error)
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(self._path + suffix)
                self._insert(blobs)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(reason=f"{BLOBS_NAME}: {error}") from error

    def find(self, checksum: str) -> bytes | None:
        """The blob with that SHA-256 (hex), None where it is not kept, or not whole any more."""
        found = self._ask("SELECT data FROM blobs WHERE sha256=?", checksum)
        data = found[0][0] if found else None
        return data if isinstance(data, bytes) and sha256(data) == checksum else None

    def kept(self, among: Sequence[str] | None) -> list[str]:
        """The SHA-256 of all blobs that are kept, of those ``among`` which it is given; the oldest first."""
        if among is None:
            return [str(found[0]) for found in self._ask("SELECT sha256 FROM blobs ORDER BY kept")]
        return [str(found[0]) for found in self._ask(_AMONG, json.dumps(list(among)))]

    def _ask(self, question: str, *values: str) -> list[tuple[object, ...]]:
        if not os.path.exists(self._path):
            return []
        try:
            with self._connect("mode=ro") as connection:
                return connection.execute(question, values).fetchall()
        except sqlite3.Error as error:
            _log.warning("%s is passed over: %s", self._path, error)
            return []

    def _insert(self, blobs: Sequence[bytes]) -> None:
        now = time.time_ns()
        with self._connect("mode=rwc") as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_SCHEMA)
            with connection:
                for number, data in enumerate(blobs):
                    connection.execute(_KEEP, (sha256(data), now + number, len(data), data))
                (counted,) = connection.execute(_COUNTED).fetchone()
                gone = [(each,) for each in too_many(connection.execute(_OLDEST), counted, self._most)]
                connection.executemany("DELETE FROM blobs WHERE sha256=?", gone)

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self._path)))}?{mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
            yield connection
