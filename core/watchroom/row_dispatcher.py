"""Brings rows to those who wait for them, whichever process made them: a thread that tails the journal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.journal import BACKSTOP_SECONDS, Changes, Journal
from watchroom.model import Row

_INTERVAL: Final = 0.02
_RETRY_SECONDS: Final = 0.5
_CHUNK: Final = 2000
"""Rows that are read at a time."""
EVERY_ROW: Final = "*"
"""An address to which all rows go, also those that are nobody's."""
_log = logging.getLogger("watchroom")


class RowDispatcher:
    """Hands each new row to those who subscribed to its address. May be used from any thread.

    ``address`` says where a row of ``journal`` goes, None: to nobody. ``look_after`` is called every few
    seconds, and ``watch`` with every row, on the dispatcher's thread.
    """

    def __init__(
        self,
        journal: Journal,
        address: Callable[[Row], str | None],
        look_after: Callable[[], None] = lambda: None,
        watch: Callable[[Row], None] = lambda _: None,
    ) -> None:
        self._watch = watch
        self._look_after = look_after
        self._journal = journal
        self._address = address
        self._lock = Lock()
        self._takers: dict[str, list[Callable[[Row], None]]] = {}
        self._changes: Changes | None = None
        self._thread: Thread | None = None
        self._stopping = Event()
        self._seq = 0
        self.interval = _INTERVAL
        """At least so many seconds between two looks, from one that found rows on."""

    def subscribe(self, addresses: tuple[str, ...], take: Callable[[Row], None]) -> Callable[[], None]:
        """Have ``take`` called, on the dispatcher's thread, with each row to these addresses that comes from
        now on; with some of them again after a failure. Returns the call that ends it."""
        with self._lock:
            for address in addresses:
                self._takers.setdefault(address, []).append(take)
            self._start()

        def end() -> None:
            with self._lock:
                for address in addresses:
                    takers = self._takers[address]
                    takers.remove(take)
                    if not takers:
                        del self._takers[address]

        return end

    def start(self) -> None:
        """Have the dispatcher's thread run, if nobody subscribed so far."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._seq = self._journal.last_seq()
            self._changes = self._journal.changes(self._seq)
            self._thread = Thread(target=self._run, args=(self._changes,), name="watchroom-rows", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._stopping.set()
        if self._changes is not None and self._thread is not None:
            self._changes.wake()
            self._thread.join()
            self._changes.close()

    def _run(self, changes: Changes) -> None:
        looked = time.monotonic()
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                is_behind = self._deliver()
                if time.monotonic() - looked >= BACKSTOP_SECONDS:
                    looked = time.monotonic()
                    self._look_after()
            except WatchroomError:
                # Nobody must become deaf because the journal could not be read once.
                _log.exception("rows could not be delivered")
                changes.wait(_RETRY_SECONDS)
                continue
            self._stopping.wait(self.interval - (time.monotonic() - began))
            if not is_behind:
                changes.wait(BACKSTOP_SECONDS)

    def _deliver(self) -> bool:
        """Deliver the next rows; whether there may be more of them already."""
        rows = self._journal.rows(self._seq, limit=_CHUNK)
        for row in rows:
            address = self._address(row)
            with self._lock:
                takers = (*self._takers.get(EVERY_ROW, ()), *self._takers.get(address or "", ()))
            for take in takers:
                take(row)
            self._watch(row)
            self._seq = row.seq
        return len(rows) == _CHUNK
