"""The cursor of the files: the last row whose files are written, stored so that it survives a crash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from watchroom.errors import WorkspaceLocked
from watchroom.platform import Platform
from watchroom.platform.process_lock import LOCK_SECONDS, ProcessLock

_POLL_SECONDS: Final = 0.005
"""Maximum seconds of polling before this process queues for the lock, because the holder may do its work."""
_STEP_SECONDS: Final = 0.00005
_LOOK_SECONDS: Final = 0.05
"""Seconds to wait for a lock after an earlier wait timed out."""


class Cursor:
    """The number of the last row whose files are written, in the file of a lock at ``path``.

    One thread of one process at a time holds the cursor, and only the holder moves it. The file also has the
    boot id of the machine at the last move.
    """

    def __init__(self, path: str, platform: Platform) -> None:
        self._lock = ProcessLock(path, platform)
        self._turn = Lock()
        self._boot = platform.boot_id()
        self._has_waited = False

    @contextmanager
    def hold(self, unless_past: int | None = None, *, seconds: float | None = None) -> Iterator[bool]:
        """Hold the cursor. Yield whether this succeeded. Not re-entrant.

        Args:
            unless_past: Give up if another process moves the cursor past this row.
            seconds: Timeout, default 10. Then `WorkspaceLocked` is raised.
        """
        seconds = LOCK_SECONDS if seconds is None else seconds
        if not self._turn.acquire(timeout=seconds):
            raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=self._lock.holder())
        try:
            if not self._take(unless_past, seconds):
                yield False
                return
            try:
                yield True
            finally:
                self._lock.release()
        finally:
            self._turn.release()

    @contextmanager
    def hold_if_free(self) -> Iterator[bool]:
        """Hold the cursor if it is free, without waiting. Yield whether this succeeded. Not re-entrant."""
        if not self._turn.acquire(blocking=False):
            yield False
            return
        try:
            is_held = self._take_if_free()
            try:
                yield is_held
            finally:
                if is_held:
                    self._lock.release()
        finally:
            self._turn.release()

    @contextmanager
    def hold_again(self) -> Iterator[None]:
        """Hold the cursor after `hold` timed out. Not re-entrant. Raise `WorkspaceLocked` after 50 ms if
        another process still holds it."""
        try:
            with self.hold(seconds=_LOOK_SECONDS):
                yield
        except WorkspaceLocked as error:
            raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=error.values["holder"]) from error

    def _take_if_free(self) -> bool:
        if not self._has_waited:
            return self._lock.try_acquire()
        try:
            self._lock.acquire(0)
        except WorkspaceLocked:
            return False
        self._has_waited = False
        return True

    def _take(self, unless_past: int | None, seconds: float) -> bool:
        """Take the lock. Return False if another process moved the cursor past ``unless_past``."""
        until = time.monotonic() + _POLL_SECONDS
        while unless_past is not None and not self._has_waited and not self._lock.try_acquire():
            if self._is_past(unless_past):
                return False
            if time.monotonic() > until:
                unless_past = None
            else:
                time.sleep(_STEP_SECONDS)
        if unless_past is None or self._has_waited:
            try:
                self._lock.acquire(seconds)
            except WorkspaceLocked:
                # The lock stays in the queue, so the next attempt must check the queue.
                self._has_waited = True
                raise
            self._has_waited = False
        return True

    def _is_past(self, seq: int) -> bool:
        """Whether the cursor is past row ``seq``. Another process may move it at any time: torn reads are
        detected by reading twice."""
        first, second = self.seq, self.seq
        return first is not None and first == second and first >= seq

    @property
    def seq(self) -> int | None:
        """The number of the row, None if the cursor was never moved."""
        number = self._lock.text().partition(" ")[0]
        return int(number) if number.isdigit() else None

    @property
    def is_of_earlier_boot(self) -> bool:
        """Whether the machine was restarted since the cursor was moved."""
        return self._lock.text().partition(" ")[2] not in ("", self._boot)

    def move(self, seq: int) -> None:
        """Record that the files of all rows up to ``seq`` are written."""
        self._lock.set_text(f"{seq} {self._boot}")

    def close(self) -> None:
        self._lock.close()
