"""The embedded journal as the source or the target of a move."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from watchroom.errors import JournalError, JournalInUse
from watchroom.kernel.journal.protocol import Journal
from watchroom.kernel.journal.sql import decode_content
from watchroom.kernel.journal.sqlite.journal import SqliteJournal
from watchroom.kernel.journal.sqlite.queries import INSERT, SQLITE
from watchroom.kernel.journal.sqlite.writer import INLINE_BYTES
from watchroom.model import Row
from watchroom.platform import detect_platform
from watchroom.platform.process_lock import ProcessLock

_READ: Final = SQLITE.select_with_content + "WHERE r.seq>? ORDER BY r.seq LIMIT ?"
_RETIRE: Final = """
CREATE TRIGGER IF NOT EXISTS rows_were_moved BEFORE INSERT ON rows
    BEGIN SELECT RAISE(ABORT, 'the journal was moved: open the workspace again'); END
"""


class SqliteMove:
    """`MoveSide` of the journal in the file at ``path``."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Creates or migrates the file.
        self._journal = SqliteJournal(path)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    @property
    def journal(self) -> Journal:
        return self._journal

    def last_seq(self) -> int:
        return self._journal.last_seq()

    def read(self, after: int, limit: int) -> list[tuple[Row, str | None]]:
        found = self._connection.execute(_READ, (after, limit))
        return [(Row._make(fields[:-1]), decode_content(fields[-1])) for fields in found]

    def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for row, content in rows:
                if content is not None and (row.size or 0) > INLINE_BYTES:
                    self._connection.execute(
                        "INSERT OR IGNORE INTO contents VALUES (?,?)", (row.sha256, content)
                    )
                    content = None
                self._connection.execute(INSERT, (*row, content))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise JournalError(reason=str(error)) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """See `MoveSide.frozen`. The appends of every process wait for this lock."""
        present = [each for each in self._journal.presence.all() if each.is_alive]
        if present:
            raise JournalInUse(process=present[0].process, machine=present[0].machine)
        with closing(ProcessLock(os.path.splitext(self._path)[0] + ".lock", detect_platform())) as lock:
            lock.acquire()
            try:
                yield
            finally:
                lock.release()

    def retire(self) -> None:
        """See `MoveSide.retire`. A process with the open file is also refused."""
        self._connection.execute(_RETIRE)

    def close(self) -> None:
        self._connection.close()
        self._journal.close()
