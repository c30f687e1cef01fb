"""Connections to the server, and the translation of errors. Connections are reused, and replaced if they are
lost."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from threading import get_ident
from typing import Any, Final, TypeVar

import psycopg
import psycopg.conninfo
from psycopg import Connection
from psycopg import errors as sqlstates
from psycopg.abc import PQGen

from watchroom.errors import (
    DraftRefused,
    EncodingUnsupported,
    JournalDenied,
    JournalError,
    JournalHeld,
    JournalUnreachable,
)

CONNECT_SECONDS: Final = 3
"""Timeout for one attempt to connect."""
UNREACHABLE_SECONDS: Final = 2.0
"""Seconds for which an unsent request is retried."""
SILENCE_SECONDS: Final = 30.0
"""Timeout for answers. The server may be frozen, or waiting for a standby."""
SHARE_SECONDS: Final = 0.01
"""Seconds to wait for a connection in use before opening another. Most queries are faster, and a new session
costs the server about as much."""
_ENCODING: Final = "UTF8"
"""The encoding of the database and of every connection, as PostgreSQL names it."""
LOCK_SECONDS: Final = 10
"""Timeout of an append that waits for its turn. The server's function has the same value."""
_SETTINGS: Final = {
    # If the server's machine has vanished, nothing arrives. Connect to its successor after 5 s.
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "watchroom",
}
# If a client's machine has vanished, its locks must not be held for hours.
_ON_SERVER: Final = """
SELECT pg_backend_pid();
SET client_connection_check_interval = '1s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 3;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 15000;
"""
"""Statements for a new connection. The first answer is the process id of the server for the connection."""
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
"""Errors that are caused by a refused draft."""
_Answer = TypeVar("_Answer")


def is_lost(error: psycopg.Error) -> bool:
    """Return whether ``error`` means that the connection or the server was lost, so that a retry on another
    connection may succeed."""
    if isinstance(error, _LOST):
        return True
    if isinstance(error, sqlstates.QueryCanceled):
        return False
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError) and (not state or state[:2] in ("08", "57"))


def translated(error: psycopg.Error) -> JournalError:
    """Return ``error`` as a `JournalError`."""
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


class BoundedConnection(Connection[tuple[Any, ...]]):
    """A connection whose answers have a timeout of ``silence`` seconds."""

    silence: float | None = None

    def wait(self, gen: PQGen[_Answer], *values: Any, **options: Any) -> _Answer:
        if self.silence is not None:
            gen = _bounded(gen, self.silence)
        return super().wait(gen, *values, **options)


def _bounded(gen: PQGen[_Answer], seconds: float) -> PQGen[_Answer]:
    """Wrap psycopg's generator ``gen`` so that it raises an error after ``seconds`` without data."""
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
    """Connections to the server at ``url``, each used by one thread at a time.

    - ``silence``: timeout for answers in seconds, None for no timeout.
    - ``share``: seconds to wait for a connection in use before another is opened.
    """

    def __init__(
        self, url: str, silence: float | None = SILENCE_SECONDS, share: float = SHARE_SECONDS
    ) -> None:
        self._url = url
        self._silence = silence
        self._share = share
        self._idle: LifoQueue[BoundedConnection] = LifoQueue()
        self._in_use: dict[BoundedConnection, int] = {}
        """The thread that uses each connection in use."""
        self._is_closed = False
        self.is_pooled = False
        """Whether a pooler may give each transaction another session. Set by the first connection."""

    def connect(self) -> BoundedConnection:
        """Open a connection that commits each statement. Raise `EncodingUnsupported`, and errors of
        psycopg."""
        connection = BoundedConnection.connect(self._url, autocommit=True, **_settings(self._url))
        connection.silence = self._silence
        try:
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != _ENCODING:
                raise EncodingUnsupported(encoding=encoding)
            served = connection.execute(_ON_SERVER).fetchone()
            # A pooler sends a process number of its own. With the session's number, clients could cancel each
            # other's queries.
            self.is_pooled = served is not None and served[0] != connection.info.backend_pid
            # Another session does not have this session's prepared statements.
            connection.prepare_threshold = None if self.is_pooled else 2
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def use(self, *, is_slow: bool = False) -> Iterator[BoundedConnection]:
        """Use a connection while the context lasts. A lost connection is not reused.

        ``is_slow``: no timeout for answers. Raise errors of psycopg.
        """
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
        """Return whether another thread will return a connection. A thread must not wait for its own
        connection."""
        threads = list(self._in_use.values())
        return bool(threads) and get_ident() not in threads

    def _give_back(self, connection: BoundedConnection) -> None:
        if self._is_closed or connection.closed or connection.info.transaction_status != 0:
            connection.close()
        else:
            self._idle.put(connection)

    def ask(self, sql: str, *values: Any, is_slow: bool = False) -> list[tuple[Any, ...]]:
        """Return the answer to a query. The query is retried if its connection was lost.

        ``is_slow``: no timeout for answers. Raise `JournalUnreachable`, `JournalError`.
        """
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
        """Close the idle connections. They are as old as the lost connection."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def close(self) -> None:
        self._is_closed = True
        self.forget_idle()


def _is_quiet(connection: Connection) -> bool:
    """Return whether an idle connection seems to be open. A server that ends a connection sends a message."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _settings(url: str) -> dict[str, Any]:
    """Return the settings of connections that are not in the address."""
    said = psycopg.conninfo.conninfo_to_dict(url)
    settings = {name: value for name, value in _SETTINGS.items() if name not in said}
    # Without this, PGCLIENTENCODING or the server decides.
    return {**settings, "client_encoding": _ENCODING}


class Patience:
    """A time limit of ``seconds`` for retries, with growing pauses of at most a second."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause = 0.02

    def wait(self) -> bool:
        """Wait before the next attempt. Return False immediately if there is no time for it."""
        if time.monotonic() + self._pause > self._until:
            return False
        time.sleep(self._pause)
        self._pause = min(1.0, self._pause * 2)
        return True
