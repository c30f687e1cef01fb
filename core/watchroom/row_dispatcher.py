"""Delivers new rows to subscribers, whichever process made them: a thread that tails the journal.

Each subscriber is isolated: its error is logged, and affects neither the thread nor the other subscribers.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from threading import Event, Lock, Thread
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.journal import BACKSTOP_SECONDS, Changes, Journal
from watchroom.model import Row

_INTERVAL: Final = 0.02
_RETRY_SECONDS: Final = 0.5
_CHUNK: Final = 2000
"""Rows that are read at a time."""
_MAX_TRIES: Final = 5
"""Attempts to deliver a row to a subscriber that fails with a `WatchroomError`."""
_MAX_BACKLOG: Final = 10_000
"""Rows kept for a subscriber that is to be tried again; the oldest are dropped."""
EVERY_ROW: Final = "*"
"""An address to which all rows go, also those that are nobody's."""
_log = logging.getLogger("watchroom")


class _Subscriber:
    """A callback, and the rows that it could not take yet. Used by the dispatcher's thread alone."""

    def __init__(self, take: Callable[[Row], None]) -> None:
        self._take = take
        self._backlog: deque[Row] = deque(maxlen=_MAX_BACKLOG)
        self._tries = 0

    @property
    def is_behind(self) -> bool:
        return bool(self._backlog)

    def deliver(self, row: Row) -> None:
        self._backlog.append(row)
        if len(self._backlog) == 1:
            self.retry()

    def retry(self) -> None:
        """Deliver the backlog in order. A `WatchroomError` may pass, such as a journal that is out of reach:
        the row is tried again, at most `_MAX_TRIES` times."""
        while self._backlog:
            row = self._backlog[0]
            try:
                self._take(row)
            except WatchroomError:
                self._tries += 1
                if self._tries < _MAX_TRIES:
                    _log.warning("row %d is delivered again", row.seq, exc_info=True)
                    return
                _log.exception("row %d could not be delivered", row.seq)
            except Exception:  # noqa: BLE001  # an error of one subscriber is fatal to nobody
                _log.exception("row %d could not be delivered", row.seq)
            self._tries = 0
            self._backlog.popleft()


class RowDispatcher:
    """Delivers each new row to the subscribers of its address. May be used from any thread.

    All callbacks run on the dispatcher's thread. What they raise is logged.

    - ``address``: returns the address of a row of ``journal``, or None.
    - ``look_after``: called every few seconds.
    - ``watch``: called with every row.
    """

    def __init__(
        self,
        journal: Journal,
        address: Callable[[Row], str | None],
        look_after: Callable[[], None] = lambda: None,
        watch: Callable[[Row], None] = lambda _: None,
    ) -> None:
        self._watcher = _Subscriber(watch)
        self._look_after = look_after
        self._journal = journal
        self._address = address
        self._lock = Lock()
        self._subscribers: dict[str, list[_Subscriber]] = {}
        self._changes: Changes | None = None
        self._thread: Thread | None = None
        self._stopping = Event()
        self._seq = 0
        self.interval = _INTERVAL
        """Minimum seconds between two reads, counted from one that found rows."""

    def subscribe(self, addresses: tuple[str, ...], take: Callable[[Row], None]) -> Callable[[], None]:
        """Call ``take`` with each new row to ``addresses``. Return the function that ends this.

        If ``take`` raises a `WatchroomError`, it is called with the row again, a few times.
        """
        subscriber = _Subscriber(take)
        with self._lock:
            for address in addresses:
                self._subscribers.setdefault(address, []).append(subscriber)
            self._start()

        def end() -> None:
            with self._lock:
                for address in addresses:
                    left = [each for each in self._subscribers.get(address, ()) if each is not subscriber]
                    if left:
                        self._subscribers[address] = left
                    else:
                        self._subscribers.pop(address, None)

        return end

    def start(self) -> None:
        """Have the dispatcher's thread run, if nobody subscribed so far."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._seq = self._journal.last_seq()
            changes = self._changes or self._journal.changes(self._seq)
            self._changes = changes
            thread = Thread(target=self._run, args=(changes,), name="watchroom-rows", daemon=True)
            thread.start()
            self._thread = thread

    def close(self) -> None:
        """Stop, and wait until the thread has ended. May be called again."""
        self._stopping.set()
        with self._lock:
            changes, self._changes = self._changes, None
        if changes is not None:
            changes.wake()
            if self._thread is not None:
                self._thread.join()
            changes.close()

    def _run(self, changes: Changes) -> None:
        looked = time.monotonic()
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                has_more, is_behind = self._deliver()
            except Exception:  # noqa: BLE001  # the journal is read again soon
                _log.exception("rows could not be delivered")
                changes.wait(_RETRY_SECONDS)
                continue
            if time.monotonic() - looked >= BACKSTOP_SECONDS:
                looked = time.monotonic()
                try:
                    self._look_after()
                except Exception:  # noqa: BLE001  # it is called again in a few seconds
                    _log.exception("the periodic work could not be done")
            self._stopping.wait(self.interval - (time.monotonic() - began))
            if not has_more:
                changes.wait(_RETRY_SECONDS if is_behind else BACKSTOP_SECONDS)

    def _deliver(self) -> tuple[bool, bool]:
        """Deliver the next rows. Return whether there may be more, and whether a subscriber is behind."""
        rows = self._journal.rows(self._seq, limit=_CHUNK)
        for each in self._all():
            each.retry()
        for row in rows:
            for each in (*self._subscribers_of(row), self._watcher):
                each.deliver(row)
            self._seq = row.seq
        return len(rows) == _CHUNK, any(each.is_behind for each in self._all())

    def _all(self) -> set[_Subscriber]:
        with self._lock:
            return {self._watcher, *chain.from_iterable(self._subscribers.values())}

    def _subscribers_of(self, row: Row) -> tuple[_Subscriber, ...]:
        try:
            address = self._address(row)
        except Exception:  # noqa: BLE001  # a row of an unexpected form has no address
            _log.exception("row %d has no address", row.seq)
            address = None
        with self._lock:
            return (*self._subscribers.get(EVERY_ROW, ()), *self._subscribers.get(address or "", ()))
