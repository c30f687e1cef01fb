"""Moves all rows of a journal to another backend, in batches. A failed move can be started again.

Nobody can append to the source during the move. The source is retired only after all rows were compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from watchroom.errors import ExtraMissing, MoveDiffers
from watchroom.kernel.journal.opening import is_server_address
from watchroom.kernel.journal.protocol import Journal
from watchroom.model import Row

_BATCH_ROWS: Final = 500


class RowSource(Protocol):
    """A reader of rows with their contents."""

    def read(self, after: int, limit: int) -> list[tuple[Row, str | None]]:
        """Return at most ``limit`` rows with seq > ``after``, in order, each with its content."""
        ...

    def last_seq(self) -> int:
        """Return the number of the newest row, 0 if there is none."""
        ...


class MoveSide(RowSource, Protocol):
    """The source or the target of a move."""

    def frozen(self) -> AbstractContextManager[None]:
        """Block all appends while the context lasts.

        Raise `WorkspaceLocked`, `JournalBusy`, and `JournalInUse` if a process holds a lease.
        """
        ...

    def retire(self) -> None:
        """Refuse every later append, because the rows have moved. Called within `frozen`. May be repeated."""
        ...

    def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
        """Insert ``rows`` with their contents unchanged, in one transaction. Raise `JournalError`."""
        ...

    @property
    def journal(self) -> Journal:
        """The journal itself."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Moved(NamedTuple):
    """The number of rows in the target, and the SHA-256 (hex) of all rows with their contents."""

    rows: int
    digest: str


def open_move_side(address: str) -> MoveSide:
    """Open the journal at ``address`` for a move, and create it if it does not exist. Raise the errors of
    `open_journal`."""
    if is_server_address(address):
        try:
            from watchroom.kernel.journal.postgres.moving import PostgresMove
        except ImportError as error:
            raise ExtraMissing(extra="postgres", package="psycopg") from error
        return PostgresMove(address)
    from watchroom.kernel.journal.sqlite.moving import SqliteMove

    return SqliteMove(address)


def copy_rows(
    source: RowSource, target: MoveSide, on_progress: Callable[[int, int], None] = lambda _, __: None
) -> Moved:
    """Copy the rows of ``source`` that ``target`` lacks, then compare all rows.

    ``on_progress`` is called with the number of finished steps and the number of all steps. Raise
    `MoveDiffers` if the target has a row that the source does not have, and `JournalError`.
    """
    last = source.last_seq()
    done = target.last_seq()
    # Each row is copied once and compared once.
    steps = last + last
    if done:
        _compare(source, target, done, lambda seq: on_progress(seq, steps))
    while batch := source.read(done, _BATCH_ROWS):
        target.write(batch)
        done = batch[-1][0].seq
        on_progress(done, steps)
    return _compare(source, target, last, lambda seq: on_progress(last + seq, steps))


def copy_blobs(source: Journal, target: Journal) -> None:
    """Copy the blobs of ``source`` that ``target`` lacks. Raise `JournalError`."""
    names = source.blobs.kept()
    kept = set(target.blobs.kept())
    for name in names:
        blob = source.blobs.find(name) if name not in kept else None
        if blob is not None:
            target.blobs.keep([blob])


def _compare(source: RowSource, target: RowSource, until: int, on_progress: Callable[[int], None]) -> Moved:
    """Read both journals up to row ``until``. Return the number and checksum of their rows. Raise
    `MoveDiffers`."""
    count, digest = 0, hashlib.sha256()
    pairs = zip(_digests(source, until), _digests(target, until), strict=False)
    for (seq, ours), (_, theirs) in pairs:
        if ours != theirs:
            raise MoveDiffers(seq=seq)
        digest.update(ours)
        count += 1
        if count % _BATCH_ROWS == 0:
            on_progress(seq)
    if target.last_seq() < until:
        raise MoveDiffers(seq=until)
    on_progress(until)
    return Moved(count, digest.hexdigest())


def _digests(journal: RowSource, until: int) -> Iterator[tuple[int, bytes]]:
    after = 0
    while rows := journal.read(after, _BATCH_ROWS):
        for row, content in rows:
            if row.seq > until:
                return
            text = json.dumps([*row, content], ensure_ascii=False)
            yield row.seq, hashlib.sha256(text.encode()).digest()
        after = rows[-1][0].seq
