"""Keyed locks between processes on any machine: the server's advisory locks, which end with their holder."""

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
from watchroom.journal.postgres.connections import (
    LOCK_SECONDS,
    UNREACHABLE_SECONDS,
    Connections,
    Patience,
    is_lost,
    translated,
)
from watchroom.keyed_lock import KeyedLock

_IS_HELD: Final = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = %s)"
)
_log = logging.getLogger("watchroom")


def _number(kind: str, key: str) -> int:
    """The lock's number on the server: a signed one of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{kind}/{key}".encode()).digest()[:8], "big", signed=True)


class ExclusiveSections:
    """`Journal.exclusive`: a lock of a transaction, which ends with its connection, through poolers too."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._threads = KeyedLock()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait until nobody else holds the lock of ``key``, and hold it. Raises `WorkspaceLocked`,
        `JournalUnreachable`, `JournalError`."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._threads.hold(key, LOCK_SECONDS))
            except TimeoutError:
                raise WorkspaceLocked(seconds=LOCK_SECONDS, holder=f"({os.getpid()})") from None
            connection = self._locked(stack, key)
            stack.callback(self._unlock, connection, key)
            yield

    def _locked(self, stack: ExitStack, key: str) -> Connection:
        """A connection that holds the lock, for as long as ``stack`` lasts."""
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
            # One round trip: nothing in it comes from outside.
            connection.execute(
                f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s';"
                f" SELECT pg_advisory_xact_lock({_number('exclusive', key)})".encode()
            )
        except psycopg.errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            raise WorkspaceLocked(seconds=LOCK_SECONDS, holder="-") from None

    def _unlock(self, connection: Connection, key: str) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            # Let go of with its connection. What was appended meanwhile was compared with its head, as ever.
            _log.warning("the section %s ended with its connection: %s", key, translated(error))


class Claims:
    """`Journal.claim`: locks of one session, on a connection of its own that is kept for as long as anything
    is claimed."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        self._connection: Connection | None = None
        self._held: set[str] = set()

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Hold the lock of ``key``, if nobody else holds it; gives whether it is held. Raises
        `JournalUnreachable`, `JournalError`."""
        is_held = self._take(key)
        try:
            yield is_held
        finally:
            if is_held:
                self._release(key)

    def is_held(self, key: str) -> bool:
        """Whether anybody holds the lock of ``key``."""
        if key in self._held:
            return True
        try:
            with self._connections.use() as connection:
                found = connection.execute(_IS_HELD, (_number("claim", key),)).fetchone()
        except psycopg.Error as error:
            raise translated(error) from error
        return bool(found and found[0])

    def _take(self, key: str) -> bool:
        with self._lock:
            if key in self._held:
                return False
            try:
                if not self._try(self._open(), key):
                    return False
            except psycopg.Error as error:
                if not is_lost(error):
                    raise translated(error) from error
                # The connection was lost since it was last used: others may have what was claimed by now.
                try:
                    self._claim_again()
                    if not self._try(self._open(), key):
                        return False
                except psycopg.Error as second:
                    raise translated(second) from second
            self._held.add(key)
            return True

    def keep(self) -> None:
        """See that what is claimed still is: after a lost connection it is claimed anew, where nobody else
        has it meanwhile. Called every few seconds by who keeps this process present."""
        with self._lock:
            if not self._held:
                return
            try:
                self._open().execute("SELECT 1")
            except psycopg.Error:
                try:
                    self._claim_again()
                except psycopg.Error as error:
                    _log.warning("claims are not held while the server is away: %s", translated(error))

    def _claim_again(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for key in sorted(self._held):
            if not self._try(self._open(), key):
                _log.error("another process claimed %s while the server was away", key)

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._connections.connect()
        return self._connection

    def _try(self, connection: Connection, key: str) -> bool:
        found = connection.execute("SELECT pg_try_advisory_lock(%s)", (_number("claim", key),)).fetchone()
        return bool(found and found[0])

    def _release(self, key: str) -> None:
        with self._lock:
            self._held.discard(key)
            if self._connection is None:
                return
            if not self._held:
                # With its connection all of its locks go.
                self._connection.close()
                self._connection = None
                return
            try:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number("claim", key),))
            except psycopg.Error as error:
                _log.warning("the claim of %s ended with its connection: %s", key, translated(error))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
