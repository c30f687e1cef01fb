"""A journal on a read-only or full medium, without SQLite's additional files.

In WAL mode, SQLite creates two files even for reading. If it cannot, the journal is opened as immutable. That
is not possible if the log has rows, because SQLite would ignore them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from watchroom.errors import JournalError
from watchroom.kernel.journal.sqlite.journal import SqliteJournal
from watchroom.kernel.journal.sqlite.schema import check_version
from watchroom.model import Appended, Draft

_UNWRITABLE: Final = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
)


class ReadOnlyJournal(SqliteJournal):
    """`Journal` in the SQLite file at ``path``, without any writes.

    If the files of the log cannot be created, later rows are not seen. Raise `JournalTooNew` if a newer
    Watchroom wrote the file, and `JournalError` if it cannot be read.
    """

    _is_writable = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._mode = "mode=ro"
        super().__init__(path)

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Raise `JournalError`."""
        raise JournalError(reason="the journal was opened to be read only")

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(os.fsencode(os.path.abspath(self._path)))}?{self._mode}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _prepared(self) -> sqlite3.Connection:
        try:
            return self._checked()
        except sqlite3.Error as error:
            if not _is_unwritable(error) or self._has_log():
                raise
        self._mode = "immutable=1"
        return self._checked()

    def _checked(self) -> sqlite3.Connection:
        """Return a connection if this Watchroom knows the journal's version. Raise `JournalTooNew`."""
        connection = self._connect()
        try:
            check_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_log(self) -> bool:
        log = f"{self._path}-wal"
        return os.path.exists(log) and os.path.getsize(log) > 0


def open_to_read(path: str | os.PathLike[str]) -> SqliteJournal:
    """Open the journal at ``path`` for reading. It is writable if its medium is.

    Raise `JournalTooNew`, `JournalBusy`, and `JournalError` if it cannot be read.
    """
    try:
        return SqliteJournal(path)
    except JournalError as error:
        if not _is_unwritable(error.__cause__):
            raise
        return ReadOnlyJournal(path)


def _is_unwritable(error: BaseException | None) -> bool:
    # The lower byte is the kind of the error.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNWRITABLE
