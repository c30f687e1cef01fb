"""Leases on boards: for a few seconds only their holder may write (BOARDS-5.1).

A lease is a version of its board's path in the journal's ``lease`` zone, and a file in ``.locks`` for people
to see. It ends when it is released or when its time is over, so nobody has to mend anything for a holder that
died. Its version is a fencing token: it grows with each holder, and a lease that somebody else took over
meanwhile cannot be extended or released by the one who had it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final, NamedTuple, Self

from watchroom import validation
from watchroom.checkout.layout import place
from watchroom.errors import BoardLeased, JournalError
from watchroom.model import SYSTEM, UNCHECKED, Appended, Json, Row, Write
from watchroom.zones.store import Store

LEASE_SECONDS: Final = 5.0
"""How long a lease lasts unless it is extended."""
MAX_LEASE_SECONDS: Final = 3600.0
LEASE_WAIT_SECONDS: Final = 6.0
"""How long a writer waits for another's lease: longer than one lasts whose holder died."""

HOLD: Final = "hold_board"
RELEASE: Final = "release_board"
EXPIRED: Final = "lease_expired"


class Lease(NamedTuple):
    """Who may write a board: ``acquired`` and ``expires`` are milliseconds since the epoch, ``token`` grows
    with each holder. ``ends_with_write``: the holder's next write releases it."""

    id: str
    board: str
    holder: str
    acquired: int
    expires: int
    token: int
    ends_with_write: bool = False

    @classmethod
    def from_row(cls, row: Row) -> Self | None:
        """The lease that ``row`` tells of, None for a row that ended one. Raises `JournalError` where it is
        damaged."""
        if row.deleted or row.outcome != "ok":
            return None
        detail = row.detail
        return cls(
            id=str(detail["lease"]),
            board=row.path,
            holder=row.actor,
            acquired=_int_field(detail["taken"]),
            expires=_int_field(detail["until"]),
            token=row.version or 0,
            ends_with_write=bool(detail.get("ends_with_write")),
        )

    def is_valid_at(self, time_ns: int) -> bool:
        """Whether it is held at ``time_ns``, nanoseconds since the epoch."""
        return self.expires * 1_000_000 > time_ns

    def to_json(self) -> str:
        """The file that shows it (BOARDS-5.1 FileLock)."""
        fields = {
            "lockId": self.id,
            "whiteboardPath": "/".join(place("board", self.board)),
            "agentId": self.holder,
            "acquiredAt": self.acquired,
            "expiresAt": self.expires,
        }
        return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


def _int_field(value: object) -> int:
    if not isinstance(value, int):
        raise JournalError(reason=f"a lease without a time: {value!r}")
    return value


class Leases:
    """Takes, extends and releases leases, and lets writers through. ``store`` has the journal, whose
    clock counts. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self, board: str) -> Lease | None:
        """The lease on ``board``, None if nobody holds one."""
        lease = self._newest(board)
        return lease if lease is not None and lease.is_valid_at(self._store.journal.now()) else None

    def acquire(
        self,
        actor: str,
        board: str,
        *,
        seconds: float = LEASE_SECONDS,
        wait: float = LEASE_WAIT_SECONDS,
        ends_with_write: bool = False,
    ) -> Lease:
        """Take the lease on ``board`` for ``actor``, for ``seconds``, or extend the actor's own.
        ``ends_with_write``: its next write releases it. Raises `InvalidName`, `BoardLeased` if somebody else
        holds it for longer than ``wait`` seconds, and ValueError for more than `MAX_LEASE_SECONDS`."""
        validation.check_board_name(board)
        if not 0 <= seconds <= MAX_LEASE_SECONDS:
            raise ValueError(f"a lease lasts at most {MAX_LEASE_SECONDS:.0f} s, not {seconds}")
        with self._when_free(actor, board, wait) as own:
            return self._commit(actor, board, own, seconds, ends_with_write)

    def release(self, lease: Lease) -> bool:
        """End ``lease``; False if it had ended already, or somebody else holds the board by now."""
        with self._exclusive(lease.board):
            known = self._newest(lease.board)
            if known is None or known.id != lease.id:
                return False
            self._store.commits.commit(Write(lease.holder, RELEASE, "lease", lease.board, None))
            return True

    @contextmanager
    def held(
        self, actor: str, board: str, *, seconds: float = LEASE_SECONDS, wait: float = LEASE_WAIT_SECONDS
    ) -> Iterator[Lease]:
        """The lease of ``actor`` on ``board`` for as long as the block takes; within a lease of the actor's
        own, that one goes on. ``seconds`` and ``wait`` are as for `acquire`, which tells the errors."""
        outer = self.current(board)
        lease = self.acquire(actor, board, seconds=seconds, wait=wait)
        try:
            yield lease
        finally:
            if outer is None or outer.id != lease.id:
                self.release(lease)

    def write(
        self, actor: str, board: str, make: Callable[[], Write], wait: float = LEASE_WAIT_SECONDS
    ) -> tuple[Write, Appended]:
        """Commit the draft that ``make`` gives once nobody but ``actor`` holds ``board``; between the two the
        board does not change. Returns the draft, and what became of it. Raises `BoardLeased` after ``wait``
        seconds, and what ``make`` raises."""
        with self._when_free(actor, board, wait) as own:
            draft = make()
            if own is not None and not own.ends_with_write:
                self._commit(actor, board, own, LEASE_SECONDS, False)
            appended = self._store.write(draft)
            if own is not None and own.ends_with_write and appended.row.outcome == "ok":
                self._store.commits.commit(Write(actor, RELEASE, "lease", board, None))
            return draft, appended

    @contextmanager
    def _when_free(self, actor: str, board: str, wait: float) -> Iterator[Lease | None]:
        """Hold off others who write the board, once it is free for the actor; yields its own lease."""
        deadline = time.monotonic() + max(0.0, wait)
        while True:
            with self._exclusive(board):
                found = self._newest(board)
                if found is not None and not found.is_valid_at(self._store.journal.now()):
                    self._store.commits.commit(
                        Write(SYSTEM, EXPIRED, "lease", board, None, message=found.holder)
                    )
                    found = None
                if found is None or found.holder == actor:
                    yield found
                    return
            self._wait(found, deadline)

    def _exclusive(self, board: str) -> AbstractContextManager[None]:
        """Hold off everyone else who takes, ends or needs the lease of a board. Raises `WorkspaceLocked`."""
        return self._store.journal.exclusive(f"lease/{board}")

    def _wait(self, lease: Lease, deadline: float) -> None:
        """Until the lease may have ended. Raises `BoardLeased` at the deadline."""
        left = deadline - time.monotonic()
        ends_in = max(0.0, (lease.expires * 1_000_000 - self._store.journal.now()) / 1e9)
        if left <= 0:
            raise BoardLeased(board=lease.board, holder=lease.holder, seconds=round(ends_in, 1))
        with closing(self._store.journal.changes()) as changes:
            if self._newest(lease.board) == lease:
                changes.wait(min(left, ends_in + 0.001))

    def _commit(
        self,
        actor: str,
        board: str,
        own: Lease | None,
        seconds: float,
        ends_with_write: bool,
    ) -> Lease:
        now = self._store.journal.now() // 1_000_000
        lease = Lease(
            id=own.id if own else uuid.uuid4().hex,
            board=board,
            holder=actor,
            acquired=own.acquired if own else now,
            expires=max(own.expires if own else 0, now + int(seconds * 1000)),
            token=0,
            ends_with_write=ends_with_write and (own is None or own.ends_with_write),
        )
        detail: dict[str, Json] = {
            "lease": lease.id,
            "taken": lease.acquired,
            "until": lease.expires,
            "ends_with_write": lease.ends_with_write,
        }
        row = self._store.commits.commit(
            Write(actor, HOLD, "lease", board, lease.to_json(), expected=UNCHECKED, detail=detail)
        ).row
        return lease._replace(token=row.version or 0)

    def _newest(self, board: str) -> Lease | None:
        head = self._store.journal.head("lease", board)
        return None if head is None else Lease.from_row(head)
