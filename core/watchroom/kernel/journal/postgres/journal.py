"""The journal on a server.

The server's function ``append`` does the compare-and-swap. It holds a lock on the number of the newest row
until the commit is on disk. So all visible rows are durable, and rows become visible in order. Contents over
64 KB are stored once, by SHA-256.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Final

import psycopg
from psycopg import Connection

from watchroom.kernel.journal.postgres.changes import Listener
from watchroom.kernel.journal.postgres.connections import SILENCE_SECONDS, Connections, translated
from watchroom.kernel.journal.postgres.locks import Claims, ExclusiveSections
from watchroom.kernel.journal.postgres.queries import (
    HEAD,
    HEAD_AS_OF,
    HEADS,
    HEADS_AS_OF,
    LAST,
    POSTGRES,
    ROWS_NUMBERED,
)
from watchroom.kernel.journal.postgres.schema import migrate
from watchroom.kernel.journal.postgres.side_stores import BlobTable, PresenceLeases, SnapshotTable
from watchroom.kernel.journal.postgres.writer import PostgresWriter
from watchroom.kernel.journal.protocol import Changes, Damage, LocalChanges
from watchroom.kernel.journal.sql import Effort, SqlReads
from watchroom.model import Appended, Draft, Row, Zone

_MAX_HEADS: Final = 256
_BEYOND: Final = "\U0010ffff"
"""A character above every character of a path."""


class PostgresJournal(SqlReads):
    """`Journal` in the PostgreSQL database at ``url`` (``postgresql://…``). May be used from any thread.

    The journal is created if the database has none. ``silence``: timeout for answers in seconds. Raise
    `JournalTooNew` if a newer Watchroom wrote the journal, `JournalUnreachable` if no server answers, and
    `JournalError` for all other refusals of the server.
    """

    dialect = POSTGRES

    def __init__(self, url: str, *, silence: float = SILENCE_SECONDS) -> None:
        self._connections = Connections(url, silence)
        self._clock = _ServerClock()
        self._writer = PostgresWriter(self._connections, self._rows_numbered, self._head_before)
        self._sections = ExclusiveSections(self._connections)
        self._claims = Claims(self._connections)
        self._listener = Listener(self._connections, self._look, self._claims.keep)
        self.presence = PresenceLeases(self._connections, self._claims.keep)
        self.snapshots = SnapshotTable(self._connections)
        self.blobs = BlobTable(self._connections)
        try:
            with self._connections.use(is_slow=True) as connection:
                migrate(connection)
                self._look(connection)
        except BaseException as error:
            self.close()
            if isinstance(error, psycopg.Error):
                raise translated(error) from error
            raise

    @property
    def is_shared(self) -> bool:
        return True

    @property
    def is_polling(self) -> bool:
        """Whether rows are polled because notifications do not arrive."""
        return self._listener.is_polling

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        if not drafts:
            return []
        appended = self._writer.append(drafts, all_or_nothing=all_or_nothing)
        self._clock.note(max(each.row.time for each in appended))
        self._listener.announce()
        return appended

    def changes(self, after: int | None = None) -> Changes:
        changes = LocalChanges()
        self._listener.add(changes)
        if after is not None and self.last_seq() > after:
            changes.wake()
        return changes

    def exclusive(self, key: str) -> AbstractContextManager[None]:
        return self._sections.hold(key)

    def claim(self, key: str) -> AbstractContextManager[bool]:
        return self._claims.claim(key)

    def is_claimed(self, key: str) -> bool:
        return self._claims.is_held(key)

    def now(self) -> int:
        return self._clock.now()

    def last_seq(self) -> int:
        return int(self._ask(LAST)[0][0])

    def seq_at(self, time_ns: int) -> int:
        return int(self._ask("SELECT watchroom.seq_at(?)", time_ns)[0][0])

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        rows = super().rows(after, until=until, limit=limit)
        if rows:
            self._clock.note(rows[-1].time)
        return rows

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        asked = (HEAD, zone, path) if as_of is None else (HEAD_AS_OF, zone, path, as_of)
        return next(map(Row._make, self._ask(*asked)), None)

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        after, limit = "", 1
        while True:
            bounds = (zone, after, prefix, prefix + _BEYOND, limit)
            if as_of is None:
                found = [Row._make(fields) for fields in self._ask(HEADS, *bounds)]
                paths = [row.path for row in found]
            else:
                answers = self._ask(HEADS_AS_OF, *bounds, as_of)
                paths = [path for path, *_ in answers]
                found = [Row._make(fields) for _, *fields in answers if fields[0] is not None]
            yield from found
            if len(paths) < limit:
                return
            after, limit = paths[-1], min(limit * 16, _MAX_HEADS)

    def problems(self) -> list[Damage]:
        return [Damage(*fields) for fields in self._ask("SELECT * FROM watchroom.problems()", effort="scan")]

    def close(self) -> None:
        self._listener.close()
        self.presence.close()
        self._claims.close()
        self._connections.close()

    def _look(self, connection: Connection) -> int:
        """Return the number of the newest row, and set the clock, because a sleeping machine stops its own
        clock."""
        found = connection.execute("SELECT seq, watchroom.clock_ns() FROM watchroom.tip").fetchone()
        if not found:
            return 0
        self._clock.set(found[1])
        return int(found[0])

    def _rows_numbered(self, numbers: Sequence[int]) -> dict[int, Row]:
        return {fields[0]: Row._make(fields) for fields in self._ask(ROWS_NUMBERED, list(numbers))}

    def _head_before(self, row: Row) -> Row | None:
        return self.head(row.zone, row.path, as_of=row.seq - 1)

    def _ask(self, sql: str, *values: Any, effort: Effort = "page") -> list[tuple[Any, ...]]:
        # The server cannot store texts with NUL, and a query with NUL is an error there.
        if any(isinstance(value, str) and "\0" in value for value in values):
            return []
        return self._connections.ask(sql.replace("?", "%s"), *values, is_slow=effort == "scan")


class _ServerClock:
    """The server's time, computed between two answers with this machine's monotonic clock."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._offset = 0
        self._newest = 0

    def set(self, server_time: int) -> None:
        """Set the clock to the time that the server has just sent. If the clock was ahead, it stops until
        that time."""
        with self._lock:
            self._offset = server_time - time.monotonic_ns()

    def note(self, row_time: int) -> None:
        """Move the clock forward if it is behind ``row_time``, the time of a row."""
        with self._lock:
            self._newest = max(self._newest, row_time)
            self._offset = max(self._offset, row_time - time.monotonic_ns())

    def now(self) -> int:
        with self._lock:
            self._newest = max(self._newest, time.monotonic_ns() + self._offset)
            return self._newest
