"""Snapshots in a database of their own beside the journal's, so that its file and its commits know nothing of
them. Whoever deletes the file loses nothing but time."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final
from urllib.parse import quote

from watchroom.errors import JournalError
from watchroom.journal.snapshots import Snapshot, most_snapshots, thin_out

DERIVED_NAME: Final = "derived.db"
_BUSY_SECONDS: Final = 2
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS snapshots("
    "format TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(format, seq))"
)
_log = logging.getLogger("watchroom")


class DerivedDatabase:
    """The snapshots in ``folder``. May be used from any thread. Its file is opened anew for each question: it
    may be gone at any moment."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, DERIVED_NAME)

    def snapshot(self, form: str, as_of: int | None) -> Snapshot | None:
        """The newest snapshot of the format ``form``, at or before row ``as_of``; None where there is none,
        or the file cannot be read."""
        if not os.path.exists(self._path):
            return None
        newest = "SELECT seq, data FROM snapshots WHERE format=? AND seq<=? ORDER BY seq DESC LIMIT 1"
        try:
            with self._connect("mode=ro") as connection:
                found = connection.execute(newest, (form, 2**62 if as_of is None else as_of)).fetchone()
        except sqlite3.Error as error:
            _log.warning("%s is passed over: %s", self._path, error)
            return None
        is_snapshot = found is not None and isinstance(found[0], int) and isinstance(found[1], bytes)
        return Snapshot(*found) if is_snapshot else None

    def keep(self, form: str, snapshot: Snapshot) -> None:
        """Keep ``snapshot``, in place of one of the same format and row; a damaged file is made anew. Raises
        `JournalError`."""
        try:
            try:
                self._insert(form, snapshot)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                _log.warning("%s is made anew: %s", self._path, error)
                with suppress(FileNotFoundError):
                    os.unlink(self._path)
                self._insert(form, snapshot)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(reason=f"{DERIVED_NAME}: {error}") from error

    def _insert(self, form: str, snapshot: Snapshot) -> None:
        with self._connect("mode=rwc") as connection:
            # What a power failure takes is made anew.
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(_SCHEMA)
            with connection:
                connection.execute("INSERT OR REPLACE INTO snapshots VALUES(?,?,?)", (form, *snapshot))
                kept = connection.execute("SELECT seq FROM snapshots WHERE format=? ORDER BY seq", (form,))
                dropped = thin_out([seq for (seq,) in kept], most_snapshots(len(snapshot.data)))
                connection.executemany(
                    "DELETE FROM snapshots WHERE format=? AND seq=?", [(form, seq) for seq in dropped]
                )

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self._path)))}?{mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
            yield connection
