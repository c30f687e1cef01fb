"""The background work of a process: new rows for subscribers, jobs that follow commits, and slow timers.

It uses two threads. The loop delivers rows and runs short jobs. The worker runs the timers one after the
other; each may take seconds. So no slow timer delays a row or a job.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from threading import TIMEOUT_MAX, Condition, Event, Lock, Thread
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.kernel.journal import BACKSTOP_SECONDS, Changes, Journal, LocalChanges
from watchroom.model import Row

EVERY_ROW: Final = "*"
"""The address that receives all rows, including rows without an address."""
DELAY_SECONDS: Final = 0.02
"""Default seconds between a request for a job and its run, so that requests are batched."""
_REST: Final = 4
"""A job waits this many times its last run time before it runs again, so that it cannot slow down its
callers."""
_INTERVAL: Final = 0.02
_RETRY_SECONDS: Final = 0.5
_CHUNK: Final = 2000
"""Number of rows that are read at a time."""
_MAX_TRIES: Final = 5
"""Maximum attempts to deliver a row to a subscriber that fails with a `WatchroomError`."""
_MAX_BACKLOG: Final = 10_000
"""Maximum number of rows kept for a failed subscriber. The oldest are dropped."""
_NOT_DELIVERED: Final = "rows could not be delivered"
_log = logging.getLogger("watchroom")


class _Subscriber:
    """A callback, and the rows that are waiting for a retry. Used only by the loop."""

    def __init__(self, on_row: Callable[[Row], None]) -> None:
        self._on_row = on_row
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
        """Deliver the backlog in order. A `WatchroomError` may be temporary, such as an unreachable journal.
        Then the row is tried again, at most `_MAX_TRIES` times."""
        while self._backlog:
            row = self._backlog[0]
            try:
                self._on_row(row)
            except WatchroomError:
                self._tries += 1
                if self._tries < _MAX_TRIES:
                    _log.warning("row %d is delivered again", row.seq, exc_info=True)
                    return
                _log.exception("row %d could not be delivered", row.seq)
            except Exception:  # noqa: BLE001  # the error of one subscriber must not affect the others
                _log.exception("row %d could not be delivered", row.seq)
            self._tries = 0
            self._backlog.popleft()


class _Timer:
    """Work that the worker repeats. ``due``: the time of its next run, by `time.monotonic`."""

    def __init__(self, name: str, seconds: float, work: Callable[[Event], object]) -> None:
        self.name = name
        self.seconds = seconds
        self.work = work
        self.due = time.monotonic() + seconds


class Background:
    """The background work of a process that has ``journal`` open. May be used from any thread.

    Each thread starts with its first work. An error of a callback is logged, and does not affect the thread
    or other callbacks. ``address``: returns the address of a row, or None.
    """

    def __init__(self, journal: Journal, address: Callable[[Row], str | None] = lambda _: None) -> None:
        self._journal = journal
        self._address = address
        self._changed = Condition()
        """Guards all attributes below. The worker waits on it."""
        self._closing = Event()
        self._loop: Thread | None = None
        self._worker: Thread | None = None
        self._local = LocalChanges()
        """Wakes the loop for any reason except new rows."""
        self._changes: Changes | None = None
        """Also wakes the loop for new rows, once somebody needs them."""
        self._is_delivering = False
        self._seq = 0
        self._subscribers: dict[str, list[_Subscriber]] = {}
        self._followers: list[tuple[str, Callable[[], object]]] = []
        self._listeners: list[Callable[[], None]] = []
        self._has_appended = False
        self._jobs: dict[str, tuple[float, Callable[[], object]]] = {}
        """The due time (by `time.monotonic`) and the job, by key."""
        self._rested: dict[str, float] = {}
        """The earliest time for the next run, by key."""
        self._running = Lock()
        """Held while jobs run."""
        self._timers: list[_Timer] = []
        self._failures: dict[str, str] = {}
        """The last failure by logged name. Repetitions of the same failure are not logged."""
        self.interval = _INTERVAL
        """Minimum seconds between two reads, measured from the last read that found rows."""

    @property
    def is_delivering(self) -> bool:
        """Whether new rows are delivered: somebody has subscribed, or called `start`."""
        return self._is_delivering

    def subscribe(
        self, addresses: tuple[str, ...], on_row: Callable[[Row], None], *, start: bool = True
    ) -> Callable[[], None]:
        """Call ``on_row`` on the loop with each new row of any process. Return an unsubscribe function.

        Args:
            addresses: Addresses of the rows, or `EVERY_ROW`.
            on_row: If it raises a `WatchroomError`, it is called again with the row, at most five times.
            start: If false, rows are delivered only once somebody else starts the delivery.
        """
        subscriber = _Subscriber(on_row)
        with self._changed:
            for address in addresses:
                self._subscribers.setdefault(address, []).append(subscriber)
        if start:
            self.start()

        def end() -> None:
            with self._changed:
                for address in addresses:
                    left = [each for each in self._subscribers.get(address, ()) if each is not subscriber]
                    if left:
                        self._subscribers[address] = left
                    else:
                        self._subscribers.pop(address, None)

        return end

    def start(self) -> None:
        """Start delivering the rows that are appended from now on."""
        with self._changed:
            if not self._is_delivering and not self._closing.is_set():
                self._seq = self._journal.last_seq()
                self._open_changes(self._seq)
                self._is_delivering = True

    def follow(self, name: str, work: Callable[[], object]) -> None:
        """Call ``work`` on the loop now, whenever there may be new rows, and at least every five seconds.

        If it raises, it is called again after half a second. ``name``: its name in the log.
        """
        with self._changed:
            self._followers.append((name, work))
            self._open_changes(0)

    def on_append(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` on the loop after appends of this process. Return an unsubscribe function.

        Appends in quick succession cause one call.
        """
        with self._changed:
            self._listeners.append(listener)

        def end() -> None:
            with self._changed:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def report_append(self) -> None:
        """Call the listeners of `on_append`."""
        if self._listeners:
            with self._changed:
                self._has_appended = True
                self._start_loop()
            self._wake()

    def schedule(self, key: str, job: Callable[[], object], delay: float = DELAY_SECONDS) -> None:
        """Run ``job`` on the loop after ``delay`` seconds, or later if its last run took long.

        While a job with this ``key`` is scheduled, further calls do nothing. After `close`, jobs wait for
        `flush`. Every job must be short, because rows and other jobs wait for it.
        """
        if key in self._jobs:
            return
        with self._changed:
            due = max(time.monotonic() + delay, self._rested.get(key, 0.0))
            is_next = all(due < other for other, _ in self._jobs.values())
            self._jobs.setdefault(key, (due, job))
            self._start_loop()
        if is_next:
            self._wake()

    def repeat(self, name: str, seconds: float, work: Callable[[Event], object]) -> None:
        """Run ``work`` on the worker every ``seconds``, counted from the end of its last run.

        Other timers wait while it runs. ``work`` receives an event that is set when it must end.
        """
        with self._changed:
            self._timers.append(_Timer(name, seconds, work))
            if self._worker is None and not self._closing.is_set():
                self._worker = self._start_thread("worker", self._run_timers)
            self._changed.notify()

    def flush(self) -> None:
        """Run the scheduled jobs now, on this thread, and wait for a running job. Must not be called from a
        job."""
        self._run_jobs(until=TIMEOUT_MAX)

    def close(self) -> None:
        """End both threads, then run the scheduled jobs. May be called again."""
        with self._changed:
            self._closing.set()
            self._changed.notify()
        self._wake()
        for thread in (self._loop, self._worker):
            if thread is not None:
                thread.join()
        with self._changed:
            changes, self._changes = self._changes, None
        try:
            self.flush()
        finally:
            if changes is not None:
                changes.close()

    def _start_thread(self, name: str, run: Callable[[], None]) -> Thread:
        thread = Thread(target=run, name=f"watchroom-{name}", daemon=True)
        thread.start()
        return thread

    def _start_loop(self) -> None:
        if self._loop is None and not self._closing.is_set():
            self._loop = self._start_thread("loop", self._run)

    def _open_changes(self, seq: int) -> None:
        if self._changes is None and not self._closing.is_set():
            self._changes = self._journal.changes(seq)
        self._start_loop()
        self._local.wake()

    def _wake(self) -> None:
        self._local.wake()
        if (changes := self._changes) is not None:
            changes.wake()

    def _run(self) -> None:
        next_read = 0.0
        while not self._closing.is_set():
            self._call_listeners()
            self._run_jobs(until=time.monotonic())
            began = time.monotonic()
            changes = self._changes
            if changes is None:
                self._local.wait(self._seconds_to_job())
            elif began < next_read:
                # Read rows that arrive in the meantime together. They must not wake the loop one by one.
                self._local.wait(min(next_read - began, self._seconds_to_job()))
            else:
                has_rows, is_behind = self._read()
                if has_rows:
                    next_read = began + self.interval
                else:
                    backstop = _RETRY_SECONDS if is_behind else BACKSTOP_SECONDS
                    changes.wait(min(backstop, self._seconds_to_job()))

    def _seconds_to_job(self) -> float:
        """Return the maximum seconds that the loop may wait."""
        with self._changed:
            if self._has_appended:
                return 0.0
            due = min((due for due, _ in self._jobs.values()), default=None)
        return TIMEOUT_MAX if due is None else max(0.0, due - time.monotonic())

    def _call_listeners(self) -> None:
        with self._changed:
            has_appended, self._has_appended = self._has_appended, False
            listeners = tuple(self._listeners) if has_appended else ()
        for listener in listeners:
            self._attempt("a subscriber to commits", listener)

    def _attempt(self, name: str, work: Callable[[], object]) -> bool:
        """Run ``work``. Return whether it raised no error."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # it has no caller; it is called again the next time
            self._log_failure(f"{name} failed", error)
            return False
        self._failures.pop(f"{name} failed", None)
        return True

    def _log_failure(self, said: str, error: Exception) -> None:
        """Log the failure of ``said``, unless the last failure was the same. A removed journal fails twice a
        second."""
        failure = repr(error)
        if self._failures.get(said) == failure:
            return
        self._failures[said] = failure
        if isinstance(error, WatchroomError):
            _log.warning("%s: %s", said, error.message(), exc_info=error)
        else:
            _log.error("%s", said, exc_info=error)

    def _run_jobs(self, until: float) -> None:
        """Run the jobs that are due at ``until``."""
        with self._running:
            with self._changed:
                # A request that arrives while its job runs needs another run: the job may have read too
                # early.
                due = [(key, self._jobs.pop(key)[1]) for key in [*self._jobs] if self._jobs[key][0] <= until]
            for key, job in due:
                began = time.monotonic()
                self._attempt(key, job)
                ended = time.monotonic()
                self._rested[key] = ended + _REST * (ended - began)

    def _run_timers(self) -> None:
        while (timer := self._next_timer()) is not None:
            self._attempt(timer.name, lambda timer=timer: timer.work(self._closing))  # type: ignore[misc]
            timer.due = time.monotonic() + timer.seconds

    def _next_timer(self) -> _Timer | None:
        """Wait until a timer is due. Return None when the worker must end."""
        with self._changed:
            while not self._closing.is_set():
                timer = min(self._timers, key=lambda each: each.due)
                seconds = timer.due - time.monotonic()
                if seconds <= 0:
                    return timer
                self._changed.wait(seconds)
            return None

    def _read(self) -> tuple[bool, bool]:
        """Deliver the next rows. Return whether there were any, and whether a callback needs a retry."""
        with self._changed:
            followers = tuple(self._followers)
        failed = [name for name, work in followers if not self._attempt(name, work)]
        if not self._is_delivering:
            return False, bool(failed)
        try:
            rows = self._journal.rows(self._seq, limit=_CHUNK)
        except Exception as error:  # noqa: BLE001  # the journal is read again soon
            self._log_failure(_NOT_DELIVERED, error)
            return False, True
        self._failures.pop(_NOT_DELIVERED, None)
        for each in self._all():
            each.retry()
        for row in rows:
            for each in self._subscribers_of(row):
                each.deliver(row)
            self._seq = row.seq
        return bool(rows), bool(failed) or any(each.is_behind for each in self._all())

    def _all(self) -> set[_Subscriber]:
        with self._changed:
            return set(chain.from_iterable(self._subscribers.values()))

    def _subscribers_of(self, row: Row) -> tuple[_Subscriber, ...]:
        try:
            address = self._address(row)
        except Exception:  # noqa: BLE001  # a row of an unexpected form has no address
            _log.exception("row %d has no address", row.seq)
            address = None
        with self._changed:
            return (*self._subscribers.get(address or "", ()), *self._subscribers.get(EVERY_ROW, ()))
