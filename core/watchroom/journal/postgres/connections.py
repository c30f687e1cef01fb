"""Connections to the server: kept in a queue, made anew when they are lost, their errors raised as ours."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from threading import get_ident, local
from typing import Any, Final, TypeVar

import psycopg
import psycopg.conninfo
from psycopg import Connection, Cursor
from psycopg import errors as sqlstates
from psycopg.abc import PQGen

from watchroom.errors import JournalError
from watchroom.journal.errors import (
    DraftRefused,
    EncodingUnsupported,
    JournalDenied,
    JournalHeld,
    JournalUnreachable,
)

CONNECT_SECONDS: Final = 3
"""How long one attempt to connect may take."""
UNREACHABLE_SECONDS: Final = 2.0
"""How long what was not sent yet waits for a server that does not answer."""
SILENCE_SECONDS: Final = 30.0
"""How long a server is waited for that was asked and sends nothing: frozen, or waiting for a standby."""
SHARE_SECONDS: Final = 0.01
"""How long one in use is waited for before another is made: most questions take less, and a new session on
the server costs about as much."""
_ENCODING: Final = "UTF8"
"""The encoding of the database and of every connection, as PostgreSQL names it."""
LOCK_SECONDS: Final = 10
"""How long an append waits for its turn (as the server's function says)."""
_SETTINGS: Final = {
    # A server's machine that vanished says nothing: its heir is looked for after 5 s.
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "watchroom",
}
# A client's machine that vanished must not hold a lock for hours.
_ON_SERVER: Final = """
SELECT pg_backend_pid();
SET client_connection_check_interval = '1s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 3;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 15000;
"""
"""Gives who serves the connection first."""
_LOST: Final = (
    psycopg.InterfaceError,
    sqlstates.ReadOnlySqlTransaction,
    sqlstates.IdleInTransactionSessionTimeout,
)
_OF_DRAFTS: Final = (
    sqlstates.CheckViolation,
    sqlstates.ProgramLimitExceeded,
    sqlstates.CharacterNotInRepertoire,
    sqlstates.UntranslatableCharacter,
    sqlstates.InvalidTextRepresentation,
    sqlstates.StatementTooComplex,
)
"""Errors of a row that the server does not take."""
_counted: Final = local()
_Answer = TypeVar("_Answer")


def is_lost(error: psycopg.Error) -> bool:
    """Whether ``error`` says that the connection, or the server behind it, is not there any more, so that
    the same can be asked again of another connection."""
    if isinstance(error, _LOST):
        return True
    if isinstance(error, sqlstates.QueryCanceled):
        return False
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError) and (not state or state[:2] in ("08", "57"))


def translated(error: psycopg.Error) -> JournalError:
    """``error`` as one of ours."""
    if is_lost(error):
        return JournalUnreachable(reason=_first_line(error))
    if isinstance(error, sqlstates.LockNotAvailable):
        return JournalHeld(seconds=LOCK_SECONDS, holder=error.diag.message_detail or "-")
    if isinstance(error, sqlstates.InsufficientPrivilege):
        return JournalDenied(reason=_first_line(error))
    if isinstance(error, _OF_DRAFTS):
        return DraftRefused(reason=_first_line(error))
    return JournalError(reason=_first_line(error))


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def statements_of_thread() -> int:
    """How many statements this thread has sent so far: a round trip each."""
    return getattr(_counted, "count", 0)


def count_statement() -> None:
    """Count one more for this thread."""
    _counted.count = statements_of_thread() + 1


class CountingCursor(Cursor[Any]):
    """A cursor that counts what it sends."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> CountingCursor:
        count_statement()
        return super().execute(query, params, **options)


class BoundedConnection(Connection[tuple[Any, ...]]):
    """A connection that gives up a server that was asked and sends nothing for ``silence`` seconds."""

    silence: float | None = None

    def wait(self, gen: PQGen[_Answer], *values: Any, **options: Any) -> _Answer:
        if self.silence is not None:
            gen = _bounded(gen, self.silence)
        return super().wait(gen, *values, **options)


def _bounded(gen: PQGen[_Answer], seconds: float) -> PQGen[_Answer]:
    """``gen``, which says what it waits for, until nothing of that has come for so long."""
    try:
        wanted = next(gen)
        until = time.monotonic() + seconds
        while True:
            ready = yield wanted
            if ready:
                until = time.monotonic() + seconds
            elif time.monotonic() > until:
                raise psycopg.OperationalError(f"the server has said nothing for {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        answer: _Answer = end.value
        return answer


class Connections:
    """Connections to the server at ``url``, each used by one thread at a time. For any thread. A server that
    says nothing for ``silence`` seconds is given up. Where others use all, one is waited for, for ``share``
    seconds, before another is made."""

    def __init__(
        self, url: str, silence: float | None = SILENCE_SECONDS, share: float = SHARE_SECONDS
    ) -> None:
        self._url = url
        self._silence = silence
        self._share = share
        self._idle: LifoQueue[BoundedConnection] = LifoQueue()
        self._in_use: dict[BoundedConnection, int] = {}
        """Those that somebody has, by which thread."""
        self._is_closed = False
        self.is_pooled = False
        """Whether there is a pooler before the server, which may give each transaction another session there.
        Known once there was a connection."""

    def connect(self) -> BoundedConnection:
        """A new connection, which commits each statement. Raises `EncodingUnsupported`, and what psycopg
        raises."""
        connection = BoundedConnection.connect(
            self._url, autocommit=True, cursor_factory=CountingCursor, **_settings(self._url)
        )
        connection.silence = self._silence
        try:
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != _ENCODING:
                raise EncodingUnsupported(encoding=encoding)
            served = connection.execute(_ON_SERVER).fetchone()
            # A pooler tells a number of its own: with that of a session clients could cancel each other's.
            self.is_pooled = served is not None and served[0] != connection.info.backend_pid
            # What was prepared in one session another one does not know.
            connection.prepare_threshold = None if self.is_pooled else 2
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def use(self, *, is_slow: bool = False) -> Iterator[BoundedConnection]:
        """A connection for as long as the context lasts. Where it is lost meanwhile it is not given to
        anybody again. ``is_slow``: an answer may take any time. Raises what psycopg raises."""
        connection = self._take() or self.connect()
        connection.silence = None if is_slow else self._silence
        self._in_use[connection] = get_ident()
        try:
            yield connection
        finally:
            del self._in_use[connection]
            self._give_back(connection)

    def _take(self) -> BoundedConnection | None:
        while True:
            try:
                connection = self._idle.get(timeout=self._share if self._others_use_all() else 0)
            except Empty:
                return None
            if _is_quiet(connection):
                return connection
            connection.close()

    def _others_use_all(self) -> bool:
        """Whether one is to come back. Who has one and needs another would wait for itself."""
        threads = list(self._in_use.values())
        return bool(threads) and get_ident() not in threads

    def _give_back(self, connection: BoundedConnection) -> None:
        if self._is_closed or connection.closed or connection.info.transaction_status != 0:
            connection.close()
        else:
            self._idle.put(connection)

    def ask(self, sql: str, *values: Any, is_slow: bool = False) -> list[tuple[Any, ...]]:
        """The answer to a question, asked again where its connection was lost; ``is_slow``: it may take any
        time. Raises `JournalUnreachable`, `JournalError`."""
        patience = Patience(UNREACHABLE_SECONDS)
        while True:
            try:
                with self.use(is_slow=is_slow) as connection:
                    return connection.execute(sql.encode(), values, binary=True).fetchall()
            except psycopg.Error as error:
                if is_lost(error):
                    self.forget_idle()
                    if patience.wait():
                        continue
                raise translated(error) from error

    def forget_idle(self) -> None:
        """Close those that nobody uses: after one was lost, the others are as old."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def close(self) -> None:
        self._is_closed = True
        self.forget_idle()


def _is_quiet(connection: Connection) -> bool:
    """Whether an idle connection stands, as far as this end knows: a server that ends one says so."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _settings(url: str) -> dict[str, Any]:
    """What is set for a connection, but for what its address says itself."""
    said = psycopg.conninfo.conninfo_to_dict(url)
    settings = {name: value for name, value in _SETTINGS.items() if name not in said}
    # The default is PGCLIENTENCODING, or that of the server's settings.
    return {**settings, "client_encoding": _ENCODING}


class Patience:
    """How long to try again, and how long to wait in between: at most a second."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause = 0.02

    def wait(self) -> bool:
        """Wait before the next attempt; False, at once, where there is no more patience."""
        if time.monotonic() + self._pause > self._until:
            return False
        time.sleep(self._pause)
        self._pause = min(1.0, self._pause * 2)
        return True
