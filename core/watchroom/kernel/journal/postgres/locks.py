"""Keyed locks between processes on any machine: advisory locks of the server, which end with their holder."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Final

import psycopg
from psycopg import Connection

from watchroom.errors import WorkspaceLocked
from watchroom.kernel.journal.postgres.connections import (
    LOCK_SECONDS,
    UNREACHABLE_SECONDS,
    Connections,
    Patience,
    is_lost,
    translated,
)
from watchroom.platform.keyed_lock import KeyedLock

_IS_HELD: Final = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = %s)"
)
_HOLDER: Final = "SELECT watchroom.section_holder(%s)"
_log = logging.getLogger("watchroom")


def _number(kind: str, key: str) -> int:
    """Return the number of the lock on the server, a signed integer of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{kind}/{key}".encode()).digest()[:8], "big", signed=True)


class ExclusiveSections:
    """`Journal.exclusive` by locks of transactions. They end with their connection, also through poolers."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._threads = KeyedLock()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Hold the lock of ``key``. Raise `WorkspaceLocked` after `LOCK_SECONDS`, `JournalUnreachable`,
        `JournalError`."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._threads.hold(key, LOCK_SECONDS))
            except TimeoutError:
                raise WorkspaceLocked(seconds=LOCK_SECONDS, holder=f"({os.getpid()})") from None
            connection = self._locked(stack, key)
            stack.callback(self._unlock, connection, key)
            yield

    def _locked(self, stack: ExitStack, key: str) -> Connection:
        """Return a connection that holds the lock until ``stack`` is closed."""
        patience = Patience(UNREACHABLE_SECONDS)
        while True:
            try:
                connection = stack.enter_context(self._connections.use())
                self._lock(connection, key)
                return connection
            except psycopg.Error as error:
                self._connections.forget_idle()
                if not is_lost(error) or not patience.wait():
                    raise translated(error) from error

    def _lock(self, connection: Connection, key: str) -> None:
        try:
            # One round trip. It has no values from outside.
            connection.execute(
                f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s';"
                f" SELECT pg_advisory_xact_lock({_number('exclusive', key)})".encode()
            )
        except psycopg.errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            raise WorkspaceLocked(seconds=LOCK_SECONDS, holder=self._holder(connection, key)) from None

    def _holder(self, connection: Connection, key: str) -> str:
        """Return the actor whose session holds the lock of ``key``, ``-`` if it was released in the
        meantime."""
        asked = connection.execute(_HOLDER, (_number("exclusive", key),)).fetchone()
        return str(asked[0]) if asked and asked[0] else "-"

    def _unlock(self, connection: Connection, key: str) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            # The lock ended with its connection. Appends still compare the heads.
            _log.warning("the section %s ended with its connection: %s", key, translated(error))


class Claims:
    """`Journal.claim` by locks of one session on its own connection.

    If the connection is lost, `keep` or the next call claims the keys again.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        self._connection: Connection | None = None
        self._held: set[str] = set()
        self._missing: set[str] = set()
        """Keys in ``_held`` whose lock was lost with the connection and not regained."""
        self._reported: set[str] = set()

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Hold the lock of ``key`` if nobody else holds it. Yield whether this succeeded. Raise
        `JournalUnreachable`, `JournalError`."""
        is_held = self._take(key)
        try:
            yield is_held
        finally:
            if is_held:
                self._release(key)

    def is_held(self, key: str) -> bool:
        """Return whether anybody holds the lock of ``key``. Raise `JournalUnreachable`, `JournalError`."""
        return key in self._held or bool(self._connections.ask(_IS_HELD, _number("claim", key))[0][0])

    def _take(self, key: str) -> bool:
        with self._lock:
            if key in self._held:
                return False
            try:
                if not self._try(key):
                    return False
            except psycopg.Error as error:
                raise translated(error) from error
            self._held.add(key)
            return True

    def _try(self, key: str) -> bool:
        """Take the lock of ``key`` if it is free, and return whether it was. Retry if the connection was lost
        since its last use. Raise errors of psycopg."""
        is_new = self._connection is None
        try:
            return self._lock_on(self._open(), key)
        except psycopg.Error as error:
            self._disconnect()
            if is_new or not is_lost(error):
                raise
        return self._lock_on(self._open(), key)

    def keep(self) -> None:
        """Regain lost locks. Called every few seconds, and when the server is back."""
        with self._lock:
            if not self._held:
                return
            try:
                self._open().execute("SELECT 1")
            except psycopg.Error:
                self._disconnect()
                try:
                    self._open()
                except psycopg.Error as error:
                    self._disconnect()
                    _log.warning("claims are not held while the server is away: %s", translated(error))

    def _open(self) -> Connection:
        """Return the connection, after an attempt to regain lost locks."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connections.connect()
            self._missing = set(self._held)
            if self._connections.is_pooled:
                # An open transaction keeps the session on the server.
                connection.execute("BEGIN")
        for key in sorted(self._missing):
            if self._lock_on(connection, key):
                self._missing.discard(key)
                self._reported.discard(key)
            elif key not in self._reported:
                # Another process has the lock, or the server has not ended the old connection yet.
                self._reported.add(key)
                _log.error("%s could not be claimed again after the server was away, trying again", key)
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lock_on(self, connection: Connection, key: str) -> bool:
        found = connection.execute("SELECT pg_try_advisory_lock(%s)", (_number("claim", key),)).fetchone()
        return bool(found and found[0])

    def _release(self, key: str) -> None:
        with self._lock:
            self._held.discard(key)
            self._reported.discard(key)
            if self._connection is None:
                return
            if key in self._missing:
                self._missing.discard(key)
                return
            try:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number("claim", key),))
                if not self._held and self._connections.is_pooled:
                    # The pooler may now give the session to others.
                    self._connection.execute("COMMIT")
                    self._disconnect()
            except psycopg.Error as error:
                # All locks ended with the connection. The other keys are claimed again later.
                self._disconnect()
                _log.warning("the claim of %s ended with its connection: %s", key, translated(error))

    def close(self) -> None:
        with self._lock:
            self._disconnect()
