"""The side stores of the server's journal: leases by the server's clock, snapshots and blobs in tables."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Final

import psycopg

from watchroom.kernel.journal.postgres.connections import Connections, translated
from watchroom.kernel.journal.side_stores import (
    MAX_BLOB_BYTES,
    Presence,
    Snapshot,
    excess_snapshots,
    max_snapshots,
)

LEASE_SECONDS: Final = 12
"""Seconds that a lease lasts after its renewal, while its connection is open."""
LOST_SECONDS: Final = 4
"""Seconds that a lease lasts after its connection is lost. Either its process died, or it connects again."""
RENEW_SECONDS: Final = 1.5
"""Seconds between two renewals."""
_RENEW: Final = "SELECT watchroom.renew_presence(%s, %s, %s, %s, %s)"
_TERMS: Final = f"interval '{LEASE_SECONDS} s', interval '{LOST_SECONDS} s'"
_IS_ALIVE: Final = f"watchroom.is_present(p.seen, p.backend, {_TERMS})"
_ALL: Final = (
    f"SELECT p.id, {_IS_ALIVE}, p.process, p.machine, p.since, p.resume FROM watchroom.presences AS p"
    " ORDER BY p.since, p.id"
)
_FORGET: Final = f"SELECT watchroom.forget_presence(%s, {_TERMS})"
_RELEASE: Final = "SELECT watchroom.release_presence(%s)"
_NEWEST_SNAPSHOT: Final = (
    "SELECT seq, data FROM watchroom.snapshots WHERE form = %s AND seq <= %s ORDER BY seq DESC LIMIT 1"
)
_SNAPSHOTS: Final = "SELECT seq FROM watchroom.snapshots WHERE form = %s"
_KEEP_SNAPSHOT: Final = "SELECT watchroom.keep_snapshot(%s, %s, %b, %s::bigint[])"
_BLOB: Final = "SELECT data FROM watchroom.blobs WHERE sha256 = %s"
_BLOBS: Final = "SELECT sha256 FROM watchroom.blobs ORDER BY kept"
_BLOBS_AMONG: Final = "SELECT sha256 FROM watchroom.blobs WHERE sha256 = ANY (%s) ORDER BY kept"
_KEEP_BLOBS: Final = "SELECT watchroom.keep_blobs(%b::bytea[], %s)"
_log = logging.getLogger("watchroom")


class PresenceLeases:
    """`PresenceStore` on the server. May be used from any thread.

    ``on_renewed``: called after each renewal of this process's lease.
    """

    def __init__(self, connections: Connections, on_renewed: Callable[[], None]) -> None:
        self._connections = connections
        self._on_renewed = on_renewed
        self._turn = Lock()
        self._values: tuple[str, int, str, int, str] | None = None
        self._closing = Event()
        self._thread: Thread | None = None

    def hold(self, resume: str = "") -> str:
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
        """Renew the lease on one connection. The process counts as alive while the connection is open."""
        while not self._closing.is_set():
            try:
                with self._connections.connect() as connection:
                    while True:
                        connection.execute(_RENEW, values)
                        begun.set()
                        self._on_renewed()
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
        return [Presence(*fields) for fields in self._connections.ask(_ALL)]

    def forget(self, lease: str) -> None:
        self._connections.ask(_FORGET, lease)

    def close(self) -> None:
        """Release the lease of this process."""
        with self._turn:
            self._closing.set()
            if self._thread is not None:
                self._thread.join()


class SnapshotTable:
    """`SnapshotStore` on the server. Snapshots by agents are ignored there, because others must not trust
    them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._sees_all: bool | None = None

    def newest(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        bound = sys.maxsize if as_of is None else as_of
        found = self._connections.ask(_NEWEST_SNAPSHOT, self._own_form(form), bound)
        return Snapshot(found[0][0], bytes(found[0][1])) if found else None

    def keep(self, form: str, seq: int, data: bytes) -> None:
        own = self._own_form(form)
        kept = sorted({int(found[0]) for found in self._connections.ask(_SNAPSHOTS, own)} | {seq})
        dropped = excess_snapshots(kept, max_snapshots(len(data)))
        self._connections.ask(_KEEP_SNAPSHOT, own, seq, data, dropped)

    def _own_form(self, form: str) -> str:
        """Return the format of snapshots of the rows that this login sees. The owner sees more rows."""
        if self._sees_all is None:
            self._sees_all = bool(self._connections.ask("SELECT watchroom.is_owner()")[0][0])
        return f"{form}/{'owner' if self._sees_all else 'member'}"


class BlobTable:
    """`BlobStore` on the server."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def keep(self, blobs: Sequence[bytes]) -> None:
        self._connections.ask(_KEEP_BLOBS, list(blobs), MAX_BLOB_BYTES)

    def find(self, checksum: str) -> bytes | None:
        found = self._connections.ask(_BLOB, checksum)
        return bytes(found[0][0]) if found else None

    def kept(self, among: Sequence[str] | None = None) -> list[str]:
        asked = (_BLOBS,) if among is None else (_BLOBS_AMONG, list(among))
        return [str(each) for (each,) in self._connections.ask(*asked)]
