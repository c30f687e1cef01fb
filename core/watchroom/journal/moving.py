"""Moves all rows of a journal into another backend: in batches, compared at the end, to be begun again.

The source is held off meanwhile and is not touched before the target is proven to hold the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from watchroom.errors import ExtraMissing
from watchroom.journal.errors import MoveDiffers
from watchroom.journal.opening import is_server_address
from watchroom.journal.protocol import Journal
from watchroom.model import Row

_BATCH_ROWS: Final = 500


class RowSource(Protocol):
    """Where rows come from."""

    def read(self, after: int, limit: int) -> list[tuple[Row, str | None]]:
        """At most ``limit`` rows with seq > ``after``, in order, each with its content."""
        ...

    def last_seq(self) -> int:
        """The newest row's number, 0 where there is none."""
        ...


class MoveSide(RowSource, Protocol):
    """A journal to be left, or to be filled."""

    def frozen(self) -> AbstractContextManager[None]:
        """Keep everyone from appending for as long as the context lasts. Raises `WorkspaceLocked`,
        `JournalBusy`, and `JournalInUse` while a process is present that runs something."""
        ...

    def retire(self) -> None:
        """Refuse every append from now on, within `frozen`: the rows are elsewhere. May be called again."""
        ...

    def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
        """Add ``rows`` with their contents, as they are, in one transaction. Raises `JournalError`."""
        ...

    @property
    def journal(self) -> Journal:
        """The journal, to be read meanwhile, and to keep blobs in."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Moved(NamedTuple):
    """How many rows the target has, and the SHA-256 (hex) of all of them with their contents."""

    rows: int
    digest: str


def open_move_side(address: str) -> MoveSide:
    """The journal at ``address``, the path of a file or that of a database, made if missing. Raises as
    `open_journal`."""
    if is_server_address(address):
        try:
            from watchroom.journal.postgres.moving import PostgresMove
        except ImportError as error:
            raise ExtraMissing(extra="postgres", package="psycopg") from error
        return PostgresMove(address)
    from watchroom.journal.sqlite.moving import SqliteMove

    return SqliteMove(address)


def copy_rows(
    source: RowSource, target: MoveSide, told: Callable[[int, int], None] = lambda _, __: None
) -> Moved:
    """Copy all rows of ``source`` that ``target`` does not have yet, and compare both, whole. ``told`` is
    called with how many steps are done and how many there are. Raises `MoveDiffers` where the target holds
    other rows, `JournalError`."""
    last = source.last_seq()
    done = target.last_seq()
    # Each row is copied once and compared once.
    steps = last + last
    if done:
        _compare(source, target, done, lambda seq: told(seq, steps))
    while batch := source.read(done, _BATCH_ROWS):
        target.write(batch)
        done = batch[-1][0].seq
        told(done, steps)
    return _compare(source, target, last, lambda seq: told(last + seq, steps))


def copy_blobs(source: Journal, target: Journal) -> None:
    """Keep in ``target`` all blobs of ``source`` that it does not have. Raises `JournalError`."""
    names = source.kept_blobs()
    kept = set(target.kept_blobs())
    for name in names:
        blob = source.blob(name) if name not in kept else None
        if blob is not None:
            target.keep_blobs([blob])


def _compare(source: RowSource, target: RowSource, until: int, told: Callable[[int], None]) -> Moved:
    """Read both up to row ``until``, and say what they hold. Raises `MoveDiffers`."""
    count, digest = 0, hashlib.sha256()
    pairs = zip(_digests(source, until), _digests(target, until), strict=False)
    for (seq, ours), (_, theirs) in pairs:
        if ours != theirs:
            raise MoveDiffers(seq=seq)
        digest.update(ours)
        count += 1
        if count % _BATCH_ROWS == 0:
            told(seq)
    if target.last_seq() < until:
        raise MoveDiffers(seq=until)
    told(until)
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
