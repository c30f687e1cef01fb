"""Background work after a commit, in batches on one thread: of several requests with one key, one is run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Condition, Event, Lock, Thread
from typing import Final

DELAY_SECONDS: Final = 0.02
"""Default seconds between a request and its work, so that requests are batched."""
_SHARE: Final = 4
"""Work waits this many times its last duration before it runs again, so that it cannot slow the callers."""
_log = logging.getLogger("watchroom")


class Follower:
    """Runs scheduled work on one background thread, called ``name``. May be used from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Condition()
        self._work: dict[str, tuple[float, Callable[[], None]]] = {}
        """By key: when it is due (by `time.monotonic`), and what to do."""
        self._rested: dict[str, float] = {}
        """By key: the earliest time for the next run."""
        self._running = Lock()
        self._closing = Event()
        self._thread: Thread | None = None

    def schedule(self, key: str, work: Callable[[], None], delay: float = DELAY_SECONDS) -> None:
        """Run ``work`` after ``delay`` seconds, later if its last run took long.

        While work of this ``key`` is scheduled, further calls do nothing. An error of ``work`` is logged.
        """
        if key in self._work:
            return
        due = max(time.monotonic() + delay, self._rested.get(key, 0.0))
        with self._changed:
            is_next = all(due < other for other, _ in self._work.values())
            self._work.setdefault(key, (due, work))
            if self._thread is None:
                thread = Thread(target=self._run, name=f"watchroom-{self._name}", daemon=True)
                thread.start()
                self._thread = thread
            if is_next:
                self._changed.notify()

    def flush(self) -> None:
        """Do at once what is scheduled, and wait for what is being done."""
        self._do(time.monotonic() + 3600)

    def close(self) -> None:
        """Do what is scheduled, and end the thread."""
        with self._changed:
            self._closing.set()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _run(self) -> None:
        while self._wait():
            self._do(time.monotonic())

    def _wait(self) -> bool:
        """Wait until work is due. Return False when the thread is to end."""
        with self._changed:
            while not self._closing.is_set():
                if not self._work:
                    self._changed.wait()
                    continue
                seconds = min(due for due, _ in self._work.values()) - time.monotonic()
                if seconds <= 0:
                    return True
                self._changed.wait(seconds)
            return False

    def _do(self, until: float) -> None:
        with self._running:
            with self._changed:
                # Out of the way before it is done: what is asked for from now on is not in it.
                due = [(key, self._work.pop(key)[1]) for key in [*self._work] if self._work[key][0] <= until]
            for key, work in due:
                began = time.monotonic()
                try:
                    work()
                except Exception:  # noqa: BLE001  # what follows has no caller to tell; the next time tries again
                    _log.exception("%s could not be done", key)
                ended = time.monotonic()
                self._rested[key] = ended + _SHARE * (ended - began)


class Repeater:
    """Does ``work`` every so many ``seconds`` on one thread of its own, which is called ``name``, from now on
    until it is closed. ``work`` is given what is set when it is to end; what it raises is logged."""

    def __init__(self, name: str, seconds: float, work: Callable[[Event], object]) -> None:
        self._seconds = seconds
        self._work = work
        self._closing = Event()
        self._thread = Thread(target=self._run, name=f"watchroom-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the work and the thread. May be called again."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._seconds):
            try:
                self._work(self._closing)
            except Exception:  # noqa: BLE001  # it has no caller to tell; the next time tries again
                _log.exception("%s: could not be done", self._thread.name)
