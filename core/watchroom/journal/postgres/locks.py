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
_HOLDER: Final = "SELECT watchroom.section_holder(%s)"
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
            raise WorkspaceLocked(seconds=LOCK_SECONDS, holder=self._holder(connection, key)) from None

    def _holder(self, connection: Connection, key: str) -> str:
        """Return the actor whose session holds the lock of ``key``, ``-`` if it was released meanwhile."""
        asked = connection.execute(_HOLDER, (_number("exclusive", key),)).fetchone()
        return str(asked[0]) if asked and asked[0] else "-"

    def _unlock(self, connection: Connection, key: str) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            # Let go of with its connection. What was appended meanwhile was compared with its head, as ever.
            _log.warning("the section %s ended with its connection: %s", key, translated(error))


class Claims:
    """`Journal.claim`: locks of one session, on a connection of its own. Where that is lost, what is claimed
    is claimed anew, by `keep` or by whoever asks next."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = Lock()
        self._connection: Connection | None = None
        self._held: set[str] = set()
        self._missing: set[str] = set()
        """Those of them that the server does not hold for this process: it was away."""
        self._told: set[str] = set()

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
        """Whether anybody holds the lock of ``key``. Raises `JournalUnreachable`, `JournalError`."""
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
        """Whether the server gives the lock of ``key``, asked anew where the connection was lost since it was
        last used. Raises what psycopg raises."""
        is_new = self._connection is None
        try:
            return self._lock_on(self._open(), key)
        except psycopg.Error as error:
            self._disconnect()
            if is_new or not is_lost(error):
                raise
        return self._lock_on(self._open(), key)

    def keep(self) -> None:
        """See that what is claimed still is. Called every few seconds, and when the server is back."""
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
        """The connection, on which what is claimed is held, where nobody else took it meanwhile."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connections.connect()
            self._missing = set(self._held)
            if self._connections.is_pooled:
                # The session on the server stays this one's for as long as a transaction is open.
                connection.execute("BEGIN")
        for key in sorted(self._missing):
            if self._lock_on(connection, key):
                self._missing.discard(key)
                self._told.discard(key)
            elif key not in self._told:
                # Another's, or one's own on a connection that the server has not given up yet.
                self._told.add(key)
                _log.error("%s was claimed anew in vain after the server was away, trying again", key)
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
            self._told.discard(key)
            if self._connection is None:
                return
            if key in self._missing:
                self._missing.discard(key)
                return
            try:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (_number("claim", key),))
                if not self._held and self._connections.is_pooled:
                    # Another may have the session now.
                    self._connection.execute("COMMIT")
                    self._disconnect()
            except psycopg.Error as error:
                # Its locks went with it, and those of others will be claimed anew.
                self._disconnect()
                _log.warning("the claim of %s ended with its connection: %s", key, translated(error))

    def close(self) -> None:
        with self._lock:
            self._disconnect()
