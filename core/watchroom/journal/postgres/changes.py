"""Waits for rows of any machine: the server notifies, and where notifications do not come, this polls.

One thread and one connection a process, whoever waits in it, once it has had the journal open for a moment:
one of a single call is gone by then. The same thread sends the notifications that this process owes others:
each in a transaction of its own after the append, many appends in one.
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

from watchroom.journal.changes import LocalChanges
from watchroom.journal.postgres.connections import Connections

_CHANNEL: Final = "watchroom"
NOTIFY_SECONDS: Final = 0.02
"""At most one notification in so long."""
POLL_SECONDS: Final = 0.25
"""How often rows are asked for where notifications do not come."""
_LISTEN_AFTER_SECONDS: Final = POLL_SECONDS
"""So late a process begins to listen: to the server another session is as much as all that a call asks. Until
then a row of others comes as late as where it is asked for."""
_HEARD_SECONDS: Final = 1.0
"""How long the first notification, one's own, may take."""
_RECONNECT_SECONDS: Final = 1.0
_BACKSTOP_SECONDS: Final = 5.0
_log = logging.getLogger("watchroom")


class Listener:
    """Tells of rows, and of one's own appends. May be used from any thread; its thread begins when it is
    first needed. ``last_seq`` gives the newest row's number by a connection; ``reconnected`` is called where
    connections may have been lost; it begins to listen ``listen_after`` seconds later."""

    def __init__(
        self,
        connections: Connections,
        last_seq: Callable[[Connection], int],
        reconnected: Callable[[], None],
        listen_after: float = _LISTEN_AFTER_SECONDS,
    ) -> None:
        self._listen_after = listen_after
        self._connections = connections
        self._last_seq = last_seq
        self._reconnected = reconnected
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
        """Whether notifications do not come, as through some poolers, so that it asks now and then."""
        return self._is_polling

    def add(self, changes: LocalChanges) -> None:
        """Wake ``changes`` at each row from now on."""
        with self._lock:
            self._waiting.add(changes)
            self._start()

    def announce(self) -> None:
        """Tell everybody of rows that this process made."""
        self._wake_all()
        if not self._owes.is_set():
            self._owes.set()
            with self._lock:
                self._start()
            self._rouse()

    def close(self) -> None:
        """Send what is owed, and end."""
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
                # The pipe is full of calls that were not answered yet: one more says nothing new.
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
            _log.warning("the server is not heard (%s), trying again", str(error).strip())
            self._closing.wait(_RECONNECT_SECONDS)
        except Exception:  # noqa: BLE001  # whoever waits looks now and then; this must not end for ever
            _log.exception("listening to the server failed, trying again")
            self._closing.wait(_RECONNECT_SECONDS)

    def _notify_before_listening(self) -> None:
        """Send what is owed meanwhile, by connections that are there anyway."""
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
        # Where that fails, the first notification of who listens tells of it.
        with self._connections.use() as connection:
            self._notify(connection)

    def _listen(self) -> None:
        with self._connections.connect() as connection:
            self._follow(connection)

    def _follow(self, connection: Connection) -> None:
        self._reconnected()
        connection.execute(f"LISTEN {_CHANNEL}")
        self._is_polling = not self._hears_itself(connection)
        if self._is_polling:
            _log.warning("notifications do not come through: asking every %s s", POLL_SECONDS)
        # What was committed while nobody listened.
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
                self._notify(connection)
            if self._was_notified(connection):
                self._wake_all()
            elif time.monotonic() - looked >= (POLL_SECONDS if self._is_polling else _BACKSTOP_SECONDS):
                looked = time.monotonic()
                self._reconnected()
                last = self._last_seq(connection)
                if last > seen:
                    self._wake_all()
                seen = last
        if self._owes.is_set():
            self._notify(connection)

    def _hears_itself(self, connection: Connection) -> bool:
        # Told by another connection: a pooler hands on what comes while it serves this one, and only then.
        with self._connections.use() as other:
            self._notify(other)
        until = time.monotonic() + _HEARD_SECONDS
        while time.monotonic() < until and not self._closing.is_set():
            for each in connection.notifies(timeout=0.05, stop_after=1):
                if each.payload == self._token:
                    return True
            # Whoever waits looks meanwhile.
            self._wake_all()
        return False

    def _notify(self, connection: Connection) -> None:
        # A transaction with nothing to lose: it alone waits for no disk.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)", (_CHANNEL, self._token)
        )

    def _sleep(self, seconds: float, connection: Connection | None = None) -> None:
        poll = select.poll()
        if connection is not None:
            poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._reading, select.POLLIN)
        if self._reading in {descriptor for descriptor, _ in poll.poll(seconds * 1000)}:
            os.read(self._reading, 1 << 16)

    def _was_notified(self, connection: Connection) -> bool:
        """Whether anybody else told of rows. One's own appends were told of at once."""
        payloads = {each.payload for each in connection.notifies(timeout=0)}
        return bool(payloads - {self._token})
