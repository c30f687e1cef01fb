"""`BoardLocks`: gives one holder the exclusive right to write a board for a few seconds (BOARDS-5.1).

A lock is a version of its board's path in the zone ``lease``, and a file in ``.locks`` for people to see. It
ends when it is released or when it expires, so the lock of a dead holder needs no cleanup. Its version is a
fencing token: after somebody else has taken the lock, its former holder cannot extend or release it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final

from watchroom import validation
from watchroom.errors import BoardLeased, WatchroomError
from watchroom.features.boards.rows import EXPIRED, HOLD, RELEASE, BoardLock
from watchroom.features.config.store import Store
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import place
from watchroom.model import SYSTEM, Appended, Json, Write

LOCK_SECONDS: Final = 5.0
"""Seconds until a lock expires, unless it is extended."""
MAX_LOCK_SECONDS: Final = 3600.0
LOCK_TIMEOUT: Final = 6.0
"""Seconds to wait for somebody else's lock. Longer than `LOCK_SECONDS`, so that the lock of a dead holder
expires."""
_log = logging.getLogger("watchroom")


class BoardLocks:
    """The locks on boards, and the writes under them. May be used from any thread.

    Times are from the clock of the journal in ``store``.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self, board: str) -> BoardLock | None:
        """Return the lock on ``board``; None if nobody holds one."""
        lock = self._newest(board)
        return lock if lock is not None and lock.is_valid_at(self._store.journal.now()) else None

    def acquire(
        self,
        call: CallContext,
        board: str,
        *,
        seconds: float = LOCK_SECONDS,
        wait: float = LOCK_TIMEOUT,
        ends_with_write: bool = False,
    ) -> BoardLock:
        """Take the lock on ``board`` for the caller, or extend the caller's own lock.

        - ``seconds``: lifetime of the lock; 0 to `MAX_LOCK_SECONDS`, default 5.
        - ``wait``: seconds to wait while somebody else holds it; default 6.
        - ``ends_with_write``: whether the caller's next write releases it; default: no.

        Raise `InvalidName`, `BoardLeased`; ValueError for ``seconds`` out of range.
        """
        validation.check_board_name(board)
        if not 0 <= seconds <= MAX_LOCK_SECONDS:
            raise ValueError(f"a board is locked for 0 to {MAX_LOCK_SECONDS:.0f} s, not {seconds}")
        with self._when_free(call, board, wait) as own:
            return self._commit(call, board, own, seconds, ends_with_write)

    def release(self, lock: BoardLock) -> bool:
        """End ``lock``. Return False if it had already ended, or if somebody else has taken the board."""
        with self._exclusive(lock.board):
            known = self._newest(lock.board)
            if known is None or known.id != lock.id:
                return False
            self._store.commits.commit(Write(lock.holder, RELEASE, "lease", lock.board, None))
            return True

    def write(
        self, call: CallContext, board: str, make: Callable[[], Write], wait: float = LOCK_TIMEOUT
    ) -> tuple[Write, Appended]:
        """Commit a draft once nobody but the caller holds ``board``.

        - ``make``: returns the draft. The board does not change until the draft is committed.
        - ``wait``: seconds to wait while somebody else holds the board; default 6.

        Return the draft and its outcome. Raise `BoardLeased`, and the errors of ``make``.
        """
        with self._when_free(call, board, wait) as own:
            draft = make()
            if own is not None and not own.ends_with_write:
                self._commit(call, board, own, LOCK_SECONDS, False)
            appended = self._store.write(draft)
            if own is not None and own.ends_with_write and appended.row.outcome == "ok":
                self._end_with_write(call, own)
            return draft, appended

    def _end_with_write(self, call: CallContext, lock: BoardLock) -> None:
        """Release ``lock`` after the caller's write. No error is raised: the version exists, and after an
        error the caller would write it again."""
        try:
            self._store.commits.commit(call.with_tool(RELEASE).write("lease", lock.board, None))
        except WatchroomError:
            _log.exception("the lock on the board %s was not released, and expires", lock.board)

    @contextmanager
    def _when_free(self, call: CallContext, board: str, wait: float) -> Iterator[BoardLock | None]:
        """Wait until the board is free for the caller, and exclude other writers. Yield the caller's own
        lock; None if the caller has none."""
        deadline = time.monotonic() + max(0.0, wait)
        while True:
            with self._exclusive(board):
                found = self._newest(board)
                if found is not None and not found.is_valid_at(self._store.journal.now()):
                    self._store.commits.commit(
                        Write(SYSTEM, EXPIRED, "lease", board, None, message=found.holder)
                    )
                    found = None
                if found is None or found.holder == call.actor:
                    yield found
                    return
            self._wait(found, deadline)

    def _exclusive(self, board: str) -> AbstractContextManager[None]:
        """Exclude others from taking, ending or checking the lock of a board. Raise `WorkspaceLocked`."""
        return self._store.journal.exclusive(f"lease/{board}")

    def _wait(self, lock: BoardLock, deadline: float) -> None:
        """Wait until ``lock`` may have ended. Raise `BoardLeased` at the deadline."""
        left = deadline - time.monotonic()
        ends_in = max(0.0, (lock.expires * 1_000_000 - self._store.journal.now()) / 1e9)
        if left <= 0:
            raise BoardLeased(board=lock.board, holder=lock.holder, seconds=round(ends_in, 1))
        with closing(self._store.journal.changes()) as changes:
            if self._newest(lock.board) == lock:
                changes.wait(min(left, ends_in + 0.001))

    def _commit(
        self,
        call: CallContext,
        board: str,
        own: BoardLock | None,
        seconds: float,
        ends_with_write: bool,
    ) -> BoardLock:
        now = self._store.journal.now() // 1_000_000
        lock = BoardLock(
            id=own.id if own else uuid.uuid4().hex,
            board=board,
            holder=call.actor,
            acquired=own.acquired if own else now,
            expires=max(own.expires if own else 0, now + int(seconds * 1000)),
            token=0,
            ends_with_write=ends_with_write and (own is None or own.ends_with_write),
        )
        detail: dict[str, Json] = {
            "lease": lock.id,
            "taken": lock.acquired,
            "until": lock.expires,
            "ends_with_write": lock.ends_with_write,
        }
        row = self._store.commits.commit(
            call.with_tool(HOLD).write("lease", board, _format_lock_file(lock), detail=detail)
        ).row
        return lock._replace(token=row.version or 0)

    def _newest(self, board: str) -> BoardLock | None:
        head = self._store.journal.head("lease", board)
        return None if head is None else BoardLock.from_row(head)


def _format_lock_file(lock: BoardLock) -> str:
    """Return the content of the file of ``lock`` (BOARDS-5.1 FileLock)."""
    fields = {
        "lockId": lock.id,
        "whiteboardPath": "/".join(place("board", lock.board)),
        "agentId": lock.holder,
        "acquiredAt": lock.acquired,
        "expiresAt": lock.expires,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"
