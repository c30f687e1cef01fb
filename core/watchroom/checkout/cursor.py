"""How far files follow the journal, kept where a crash finds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from watchroom.errors import WorkspaceLocked
from watchroom.process_lock import LOCK_SECONDS, ProcessLock, boot_id


class Cursor:
    """The number of the last row whose files are laid out, in the file of a lock at ``path``.

    One thread of one process at a time holds it, and reads and moves it meanwhile. The file also names the
    run of the machine in which it was moved last.
    """

    def __init__(self, path: str) -> None:
        self._lock = ProcessLock(path)
        self._turn = Lock()
        self._boot = boot_id()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep everyone else off. Not re-entrant. Raises `WorkspaceLocked` after ten seconds in vain."""
        if not self._turn.acquire(timeout=LOCK_SECONDS):
            raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=self._lock.holder())
        try:
            self._lock.acquire(LOCK_SECONDS)
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._turn.release()

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
