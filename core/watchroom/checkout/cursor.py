"""How far files follow the journal, kept where a crash finds it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from watchroom.errors import WorkspaceLocked
from watchroom.platforms import Platform
from watchroom.process_lock import LOCK_SECONDS, ProcessLock

_POLL_SECONDS: Final = 0.005
"""For so long whoever finds the lock taken looks whether its work is done for it; then it waits in turn."""
_STEP_SECONDS: Final = 0.00005
_LOOK_SECONDS: Final = 0.05
"""For so long whoever was held up before looks whether it still is."""


class Cursor:
    """The number of the last row whose files are laid out, in the file of a lock at ``path``.

    One thread of one process at a time holds it, and reads and moves it meanwhile. The file also names the
    run of the machine in which it was moved last.
    """

    def __init__(self, path: str, platform: Platform) -> None:
        self._lock = ProcessLock(path, platform)
        self._turn = Lock()
        self._boot = platform.boot_id()
        self._has_waited = False

    @contextmanager
    def hold(self, unless_past: int | None = None, *, seconds: float | None = None) -> Iterator[bool]:
        """Keep everyone else off; yields whether it is held. Not re-entrant. Where another process holds it
        and moves it past row ``unless_past`` meanwhile, it is not held. Raises `WorkspaceLocked` after so
        many ``seconds`` (default: ten) in vain."""
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
        """Keep everyone else off, without waiting for anyone; yields whether it is held. Not re-entrant."""
        if not self._turn.acquire(blocking=False):
            yield False
            return
        try:
            is_held = not self._has_waited and self._lock.try_acquire()
            try:
                yield is_held
            finally:
                if is_held:
                    self._lock.release()
        finally:
            self._turn.release()

    @contextmanager
    def hold_again(self) -> Iterator[None]:
        """Keep everyone else off, after `hold` waited in vain. Not re-entrant. Raises `WorkspaceLocked` at
        once where another process still holds it."""
        try:
            with self.hold(seconds=_LOOK_SECONDS):
                yield
        except WorkspaceLocked as error:
            raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=error.values["holder"]) from error

    def _take(self, unless_past: int | None, seconds: float) -> bool:
        """Take the lock, or see that it need not be taken."""
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
                # The lock still waits for its turn on its own: from now on that has to be asked.
                self._has_waited = True
                raise
        return True

    def _is_past(self, seq: int) -> bool:
        """Whether the cursor is past the row, as far as can be told while another process may move it: what
        is read in the middle of that is not the same twice."""
        first, second = self.seq, self.seq
        return first is not None and first == second and first >= seq

    @property
    def seq(self) -> int | None:
        """The row's number, None where the cursor was never moved."""
        number = self._lock.text().partition(" ")[0]
        return int(number) if number.isdigit() else None

    @property
    def is_of_earlier_boot(self) -> bool:
        """Whether the machine went down since the cursor was moved."""
        return self._lock.text().partition(" ")[2] not in ("", self._boot)

    def move(self, seq: int) -> None:
        """Say that the files of all rows up to ``seq`` are laid out."""
        self._lock.set_text(f"{seq} {self._boot}")

    def close(self) -> None:
        self._lock.close()
