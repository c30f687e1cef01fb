"""Waits for rows of any machine. Uses the server's notifications, or polling if they do not arrive.

A process has one thread and one connection for all its waits. They start after `_LISTEN_AFTER_SECONDS`, so a
process with a single call does not start them. The same thread sends the notifications of this process. Each
is a transaction after the append, and many appends share one.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable
from secrets import token_hex
from threading import Event, Lock, Thread
from typing import Final
from weakref import WeakSet

import psycopg
from psycopg import Connection

from watchroom.kernel.journal.postgres.connections import Connections
from watchroom.kernel.journal.protocol import LocalChanges

_CHANNEL: Final = "watchroom"
NOTIFY_SECONDS: Final = 0.02
"""Seconds between two notifications."""
POLL_SECONDS: Final = 0.25
"""Seconds between two polls if notifications do not arrive."""
_LISTEN_AFTER_SECONDS: Final = POLL_SECONDS
"""Seconds before a process listens, because a session costs the server as much as a whole call. Until then,
rows of other processes are polled."""
_HEARD_SECONDS: Final = 1.0
"""Timeout for the first notification, which this process sends itself."""
_RECONNECT_SECONDS: Final = 1.0
_BACKSTOP_SECONDS: Final = 5.0
_log = logging.getLogger("watchroom")


class Listener:
    """Wakes waits for rows, and notifies other processes of this process's appends. May be used from any
    thread.

    Its own thread starts when it is first needed.

    - ``last_seq``: takes a connection, and returns the number of the newest row.
    - ``on_reconnected``: called when connections may have been lost.
    - ``listen_after``: seconds before the thread listens.
    """

    def __init__(
        self,
        connections: Connections,
        last_seq: Callable[[Connection], int],
        on_reconnected: Callable[[], None],
        listen_after: float = _LISTEN_AFTER_SECONDS,
    ) -> None:
        self._listen_after = listen_after
        self._connections = connections
        self._last_seq = last_seq
        self._on_reconnected = on_reconnected
        self._waiting: WeakSet[LocalChanges] = WeakSet()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closing = Event()
        self._owes = Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._token = token_hex(6)
        self._is_polling = False

    @property
    def is_polling(self) -> bool:
        """Whether rows are polled, because notifications do not arrive (as through some poolers)."""
        return self._is_polling

    def add(self, changes: LocalChanges) -> None:
        """Wake ``changes`` at each new row."""
        with self._lock:
            self._waiting.add(changes)
            self._start()

    def announce(self) -> None:
        """Wake all waits for the new rows of this process."""
        self._wake_all()
        if not self._owes.is_set():
            self._owes.set()
            with self._lock:
                self._start()
            self._rouse()

    def close(self) -> None:
        """Send the due notifications, and stop."""
        self._closing.set()
        self._rouse()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._writing >= 0:
                os.close(self._reading)
                os.close(self._writing)
                self._writing = -1

    def _start(self) -> None:
        if self._thread is None and not self._closing.is_set():
            self._thread = Thread(target=self._run, name="watchroom-listen", daemon=True)
            self._thread.start()

    def _rouse(self) -> None:
        with self._lock:
            if self._writing < 0:
                return
            try:
                os.write(self._writing, b"!")
            except BlockingIOError:
                # The pipe is full of wake-ups that the thread has not read. Another one would change nothing.
                return

    def _wake_all(self) -> None:
        with self._lock:
            for changes in self._waiting:
                changes.wake()

    def _run(self) -> None:
        self._attempt(self._notify_before_listening)
        while not self._closing.is_set():
            self._attempt(self._listen)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except psycopg.Error as error:
            _log.warning("listening to the server failed (%s), trying again", str(error).strip())
            self._closing.wait(_RECONNECT_SECONDS)
        except Exception:  # noqa: BLE001  # waits have a timeout, and the thread must not end
            _log.exception("listening to the server failed, trying again")
            self._closing.wait(_RECONNECT_SECONDS)

    def _notify_before_listening(self) -> None:
        """Until the thread listens, send due notifications on existing connections."""
        until, sent = time.monotonic() + self._listen_after, 0.0
        while not self._closing.is_set() and (now := time.monotonic()) < until:
            due = sent + NOTIFY_SECONDS if self._owes.is_set() else until
            if due <= now:
                sent = now
                self._send_owed()
            else:
                self._sleep(min(due, until) - now)
        if self._owes.is_set():
            self._send_owed()

    def _send_owed(self) -> None:
        self._owes.clear()
        # If this fails, the first notification of the listening thread replaces it.
        with self._connections.use() as connection:
            self._notify(connection, self._token)

    def _listen(self) -> None:
        with self._connections.connect() as connection:
            self._follow(connection)

    def _follow(self, connection: Connection) -> None:
        self._on_reconnected()
        connection.execute(f"LISTEN {_CHANNEL}")
        self._is_polling = not self._hears_itself(connection)
        # If the listener was closed in the meantime, it has not waited for its notification.
        if self._is_polling and not self._closing.is_set():
            _log.warning("notifications do not arrive: polling every %s s", POLL_SECONDS)
        # Rows may have been committed before the thread listened.
        self._wake_all()
        seen = self._last_seq(connection)
        sent = 0.0
        looked = time.monotonic()
        while not self._closing.is_set():
            pause = POLL_SECONDS if self._is_polling else _BACKSTOP_SECONDS
            if self._owes.is_set():
                pause = max(0.0, sent + NOTIFY_SECONDS - time.monotonic())
            self._sleep(pause, connection)
            if self._owes.is_set() and time.monotonic() >= sent + NOTIFY_SECONDS:
                self._owes.clear()
                sent = time.monotonic()
                self._notify(connection, self._token)
            if self._was_notified(connection):
                self._wake_all()
            elif time.monotonic() - looked >= (POLL_SECONDS if self._is_polling else _BACKSTOP_SECONDS):
                looked = time.monotonic()
                self._on_reconnected()
                last = self._last_seq(connection)
                if last > seen:
                    self._wake_all()
                seen = last
        if self._owes.is_set():
            self._notify(connection, self._token)

    def _hears_itself(self, connection: Connection) -> bool:
        # Sent on another connection, because a pooler only forwards notifications that arrive while it serves
        # this one. Not this process's usual payload: a pooler can forward one that was sent before.
        payload = token_hex(6)
        with self._connections.use() as other:
            self._notify(other, payload)
        until = time.monotonic() + _HEARD_SECONDS
        while time.monotonic() < until and not self._closing.is_set():
            for each in connection.notifies(timeout=0.05, stop_after=1):
                if each.payload == payload:
                    return True
            # Waits poll in the meantime.
            self._wake_all()
        return False

    def _notify(self, connection: Connection, payload: str) -> None:
        # The transaction writes no data, so it need not wait for the disk.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)", (_CHANNEL, payload)
        )

    def _sleep(self, seconds: float, connection: Connection | None = None) -> None:
        poll = select.poll()
        if connection is not None:
            poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._reading, select.POLLIN)
        if self._reading in {descriptor for descriptor, _ in poll.poll(seconds * 1000)}:
            os.read(self._reading, 1 << 16)

    def _was_notified(self, connection: Connection) -> bool:
        """Return whether another process sent a notification. Appends of this process wake the waits
        immediately."""
        payloads = {each.payload for each in connection.notifies(timeout=0)}
        return bool(payloads - {self._token})
