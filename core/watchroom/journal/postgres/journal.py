"""The journal on a server.

Compare-and-swap is the server's function ``append``, under a lock on the newest row's number that is held
until the commit is on disk: what is visible is durable, and rows become visible in their order. Contents over
64 KB are stored once, by SHA-256.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Final

import psycopg
from psycopg import Connection

from watchroom.errors import JournalDamaged
from watchroom.journal.blobs import MOST_BYTES
from watchroom.journal.changed_paths import ChangedPath, VersionGroup, join_groups
from watchroom.journal.changes import LocalChanges
from watchroom.journal.postgres.changes import Listener
from watchroom.journal.postgres.connections import (
    SILENCE_SECONDS,
    Connections,
    statements_of_thread,
    translated,
)
from watchroom.journal.postgres.locks import Claims, ExclusiveSections
from watchroom.journal.postgres.presence import PresenceLeases
from watchroom.journal.postgres.queries import (
    BLOB,
    BLOBS,
    BLOBS_AMONG,
    CHANGED,
    CONTENT,
    HEAD,
    HEAD_AS_OF,
    HEADS,
    HEADS_AND_NOTES,
    HEADS_AS_OF,
    HEADS_OF,
    HEADS_WITH_CONTENT,
    HISTORY,
    KEEP_BLOBS,
    KEEP_SNAPSHOT,
    LAST,
    LAST_NOTES,
    NEWEST_OF_TOPICS,
    NOTES,
    OPEN_ITEMS,
    ROW,
    ROWS,
    ROWS_NUMBERED,
    SELECT,
    SETTLED,
    SNAPSHOT,
    SNAPSHOTS,
    VERSION,
    VERSIONS,
    filter_clauses,
)
from watchroom.journal.postgres.schema import migrate
from watchroom.journal.postgres.writer import Writer
from watchroom.journal.protocol import Changes, Damage, NoteKey, Presence, RowFilter
from watchroom.journal.snapshots import Snapshot, most_snapshots, thin_out
from watchroom.journal.topics import end_of_prefix
from watchroom.model import Appended, Draft, Row, Zone

_MOST_HEADS: Final = 256
_BEYOND: Final = "\U0010ffff"
"""After whatever a path can go on with."""


class PostgresJournal:
    """`Journal` in the PostgreSQL database at ``url`` (``postgresql://…``), made if there is none in it. May
    be used from any thread. A server that was asked and says nothing for ``silence`` seconds is given up.

    Raises `JournalTooNew` if a newer Watchroom wrote it, `JournalUnreachable` if no server answers,
    `JournalError` for anything else that the server refuses.
    """

    def __init__(self, url: str, *, silence: float = SILENCE_SECONDS) -> None:
        self._connections = Connections(url, silence)
        self._clock = _ServerClock()
        self._sees_all: bool | None = None
        self._writer = Writer(self._connections, self._rows_numbered, self._head_before)
        self._sections = ExclusiveSections(self._connections)
        self._claims = Claims(self._connections)
        self._listener = Listener(self._connections, self._look, self._claims.keep)
        self._presence = PresenceLeases(self._connections, self._claims.keep)
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
    def statements(self) -> int:
        """How many statements this thread has sent to servers so far: a round trip each."""
        return statements_of_thread()

    @property
    def is_polling(self) -> bool:
        """Whether it asks for rows now and then, since notifications do not come through."""
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

    def present(self, resume: str = "") -> str:
        return self._presence.present(resume)

    def presences(self) -> list[Presence]:
        return self._presence.all()

    def forget_presence(self, presence: str) -> None:
        self._presence.forget(presence)

    def last_seq(self) -> int:
        return int(self._ask(LAST)[0][0])

    def seq_at(self, time_ns: int) -> int:
        return int(self._ask("SELECT watchroom.seq_at(%s)", time_ns)[0][0])

    def row(self, seq: int) -> Row | None:
        return self._one(ROW, seq)

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        rows = self._rows(ROWS, after, sys.maxsize if until is None else until, limit)
        if rows:
            self._clock.note(rows[-1].time)
        return rows

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        clauses, values = filter_clauses(only or RowFilter())
        sql = f"{SELECT} WHERE r.seq < %s {clauses} ORDER BY r.seq DESC LIMIT %s"
        return self._rows(sql, before, *values, limit)

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        return self._one(HEAD, zone, path) if as_of is None else self._one(HEAD_AS_OF, zone, path, as_of)

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        return self._each_of(HEADS_OF, paths, 2)

    def _each_of(self, sql: str, asked: Sequence[tuple[str, ...]], fields: int) -> list[Row | None]:
        found: list[Row | None] = [None] * len(asked)
        for number, *row in self._ask(sql, *_columns(asked, fields)):
            found[number - 1] = Row._make(row)
        return found

    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        heads: list[tuple[Row, str | None] | None] = [None] * len(paths)
        for number, *fields, content in self._ask(HEADS_WITH_CONTENT, *_columns(paths, 2)):
            heads[number - 1] = Row._make(fields), _text(content)
        return heads

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        return self._one(VERSION, zone, path, version)

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        after, most = "", 1
        while True:
            bounds = (zone, after, prefix, prefix + _BEYOND, most)
            if as_of is None:
                found = self._rows(HEADS, *bounds)
                paths = [row.path for row in found]
            else:
                answers = self._ask(HEADS_AS_OF, *bounds, as_of)
                paths = [path for path, *_ in answers]
                found = [Row._make(fields) for _, *fields in answers if fields[0] is not None]
            yield from found
            if len(paths) < most:
                return
            after, most = paths[-1], min(most * 16, _MOST_HEADS)

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        return self._rows(HISTORY, zone, path, after_version, limit)

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        last = sys.maxsize if until is None else until
        found = self._ask(VERSIONS, zone, path, after, last, limit)
        return [(Row._make(fields[:-1]), _text(fields[-1])) for fields in found]

    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        which = None if zones is None else list(zones)
        found = self._connections.ask(CHANGED, after, until, which, which, is_slow=True)
        return join_groups(map(VersionGroup._make, found))

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        until = None if before is None else before - 1
        where = "r.zone = %s AND r.path = %s AND r.outcome <> 'ok'"
        return self._newest(where, (zone, path), after, until, limit)

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        return next(iter(self.notes(zone, path, actor, tool, limit=1)), None)

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        return self._each_of(LAST_NOTES, keys, 4)

    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        found: list[Row | None] = [None] * (len(paths) + len(keys))
        columns = (*_columns(paths, 2), *_columns(keys, 4))
        for is_note, number, *row in self._ask(HEADS_AND_NOTES, *columns):
            found[len(paths) * is_note + number - 1] = Row._make(row)
        return found[: len(paths)], found[len(paths) :]

    def notes(
        self,
        zone: Zone,
        path: str,
        actor: str,
        tool: str,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        return self._newest(NOTES, (zone, path, actor, tool), after, until, limit)

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._newest("r.topic = %s", (name,), after, until, limit)

    def newest_of_topics(self, prefix: str) -> list[Row]:
        return self._rows(NEWEST_OF_TOPICS, prefix, end_of_prefix(prefix))

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest("r.actor = %s AND r.call = %s", (actor, call), 0, None, None)

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        return self._rows(OPEN_ITEMS, zone, holder)

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(f"r.zone = %s AND r.path = %s AND {SETTLED}", (zone, path), after, None, limit)

    def content(self, seq: int) -> str | None:
        found = self._ask(CONTENT, seq)
        return _text(found[0][0]) if found else None

    def problems(self) -> list[Damage]:
        found = self._connections.ask("SELECT * FROM watchroom.problems()", is_slow=True)
        return [Damage(*fields) for fields in found]

    def snapshot(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        found = self._ask(SNAPSHOT, self._own_form(form), sys.maxsize if as_of is None else as_of)
        return Snapshot(found[0][0], bytes(found[0][1])) if found else None

    def keep_snapshot(self, form: str, seq: int, data: bytes) -> None:
        """As `Journal.keep_snapshot`; nothing where an agent asks, by whose word nobody else should go."""
        own = self._own_form(form)
        kept = sorted({int(found[0]) for found in self._ask(SNAPSHOTS, own)} | {seq})
        self._ask(KEEP_SNAPSHOT, own, seq, data, thin_out(kept, most_snapshots(len(data))))

    def keep_blobs(self, blobs: Sequence[bytes]) -> None:
        self._ask(KEEP_BLOBS, list(blobs), MOST_BYTES)

    def blob(self, checksum: str) -> bytes | None:
        found = self._ask(BLOB, checksum)
        return bytes(found[0][0]) if found else None

    def kept_blobs(self, among: Sequence[str] | None = None) -> list[str]:
        found = self._ask(BLOBS) if among is None else self._ask(BLOBS_AMONG, list(among))
        return [each for (each,) in found]

    def _own_form(self, form: str) -> str:
        """The format of what is made of the rows that this login sees: the owner sees more."""
        if self._sees_all is None:
            self._sees_all = bool(self._ask("SELECT watchroom.is_owner()")[0][0])
        return f"{form}/{'owner' if self._sees_all else 'member'}"

    def close(self) -> None:
        self._listener.close()
        self._presence.close()
        self._claims.close()
        self._connections.close()

    def _look(self, connection: Connection) -> int:
        """The newest row's number. The clock is set by the server's: a machine that sleeps stops its own."""
        found = connection.execute("SELECT seq, watchroom.clock_ns() FROM watchroom.tip").fetchone()
        if not found:
            return 0
        self._clock.set(found[1])
        return int(found[0])

    def _rows_numbered(self, numbers: Sequence[int]) -> dict[int, Row]:
        return {row.seq: row for row in self._rows(ROWS_NUMBERED, list(numbers))}

    def _head_before(self, row: Row) -> Row | None:
        return self.head(row.zone, row.path, as_of=row.seq - 1)

    def _newest(
        self, where: str, values: tuple[str, ...], after: int, until: int | None, limit: int | None
    ) -> list[Row]:
        sql = f"{SELECT} WHERE {where} AND r.seq > %s AND r.seq <= %s ORDER BY r.seq DESC LIMIT %s"
        return self._rows(sql, *values, after, sys.maxsize if until is None else until, limit)

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        return [Row._make(fields) for fields in self._ask(sql, *values)]

    def _one(self, sql: str, *values: Any) -> Row | None:
        found = self._ask(sql, *values)
        return Row._make(found[0]) if found else None

    def _ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        # No text on the server holds NUL, nor can it be asked for one that does.
        if any(isinstance(value, str) and "\0" in value for value in values):
            return []
        return self._connections.ask(sql, *values)


class _ServerClock:
    """The server's time, kept by this machine's steady clock between its answers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._offset = 0
        self._newest = 0

    def set(self, server_time: int) -> None:
        """The server has just told its time. Where this clock was ahead, it stands until then."""
        with self._lock:
            self._offset = server_time - time.monotonic_ns()

    def note(self, row_time: int) -> None:
        """Never say an earlier time than that of a row that was seen."""
        with self._lock:
            self._newest = max(self._newest, row_time)
            self._offset = max(self._offset, row_time - time.monotonic_ns())

    def now(self) -> int:
        with self._lock:
            self._newest = max(self._newest, time.monotonic_ns() + self._offset)
            return self._newest


def _columns(asked: Sequence[tuple[str, ...]], fields: int) -> list[list[str]]:
    """One list a field, as arrays are sent. What holds NUL is nowhere, and neither is what is all empty."""
    askable = [each if "\0" not in "".join(each) else ("",) * fields for each in asked]
    return [[each[field] for each in askable] for field in range(fields)]


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else bytes(content).decode()
    except UnicodeDecodeError as error:
        raise JournalDamaged from error
