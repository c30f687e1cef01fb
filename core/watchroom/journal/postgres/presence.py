"""Who is there, on any machine: each process that runs something renews a lease by the server's clock."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

import psycopg

from watchroom.journal.postgres.connections import Connections, translated
from watchroom.journal.protocol import Presence

LEASE_SECONDS: Final = 12
"""How long a lease lasts after it was renewed, while its connection stands."""
LOST_SECONDS: Final = 4
"""How long it lasts where its connection is gone: its process died, or connects anew."""
RENEW_SECONDS: Final = 1.5
_RENEW: Final = "SELECT watchroom.renew_presence(%s, %s, %s, %s, %s)"
_TERMS: Final = f"interval '{LEASE_SECONDS} s', interval '{LOST_SECONDS} s'"
_IS_ALIVE: Final = f"watchroom.is_present(p.seen, p.backend, {_TERMS})"
_ALL: Final = (
    f"SELECT p.id, {_IS_ALIVE}, p.process, p.machine, p.since, p.resume FROM watchroom.presences AS p"
    " ORDER BY p.since, p.id"
)
_FORGET: Final = f"SELECT watchroom.forget_presence(%s, {_TERMS})"
_RELEASE: Final = "SELECT watchroom.release_presence(%s)"
_log = logging.getLogger("watchroom")


class PresenceLeases:
    """The leases on the server. ``renewed`` is called each time after this process's own was renewed. May be
    used from any thread."""

    def __init__(self, connections: Connections, renewed: Callable[[], None]) -> None:
        self._connections = connections
        self._renewed = renewed
        self._turn = Lock()
        self._values: tuple[str, int, str, int, str] | None = None
        self._closing = Event()
        self._thread: Thread | None = None

    def present(self, resume: str) -> str:
        """Hold a lease from now on, if this does not hold one; its id. Raises `JournalError`."""
        with self._turn:
            if self._values is None:
                values = (secrets.token_hex(6), os.getpid(), platform.node(), time.time_ns(), resume)
                begun = Event()
                failed: list[psycopg.Error] = []
                thread = Thread(
                    target=self._renew, args=(values, begun, failed), name="watchroom-presence", daemon=True
                )
                thread.start()
                begun.wait()
                if failed:
                    thread.join()
                    raise translated(failed[0]) from failed[0]
                self._values, self._thread = values, thread
            return self._values[0]

    def _renew(
        self, values: tuple[str, int, str, int, str], begun: Event, failed: list[psycopg.Error]
    ) -> None:
        """Renew the lease, on one connection: that it stands says that the process lives."""
        while not self._closing.is_set():
            try:
                with self._connections.connect() as connection:
                    while True:
                        connection.execute(_RENEW, values)
                        begun.set()
                        self._renewed()
                        if self._closing.wait(RENEW_SECONDS):
                            connection.execute(_RELEASE, values[:1])
                            return
            except psycopg.Error as error:
                if not begun.is_set():
                    failed.append(error)
                    begun.set()
                    return
                _log.warning("the lease of this process could not be renewed: %s", translated(error))
                self._closing.wait(1.0)

    def all(self) -> list[Presence]:
        """The leases that are held, and those that ran out and were not forgotten since. Raises
        `JournalError`."""
        return [Presence(*fields) for fields in self._connections.ask(_ALL)]

    def forget(self, identity: str) -> None:
        """Take away the lease ``identity``, if it has run out. Raises `JournalError`."""
        self._connections.ask(_FORGET, identity)

    def close(self) -> None:
        """Release the lease that this holds."""
        with self._turn:
            self._closing.set()
            if self._thread is not None:
                self._thread.join()
