"""Folds that begin at a snapshot, and how snapshots are kept.

A snapshot is trusted only as far as it can be checked: its checksum, its format, and that the last row it
took in is the journal's row of that number. Any other one is passed over, and everything is folded from the
one before it.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from hashlib import sha256
from threading import Event
from typing import Final, cast

from watchroom.journal import Journal, Snapshot
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.model import Json
from watchroom.projections.fold import FORMAT, Fold
from watchroom.projections.model import Model

CLAIM: Final = "snapshots"
"""Whoever has claimed this keeps snapshots."""
_NAME: Final = f"model/{FORMAT}"
_MOST_BYTES: Final = 512 * 1024 * 1024
"""Of a snapshot, unpacked."""
_CHUNK: Final = 1000
_BATCH: Final = 5000
_REST: Final = 3
"""So many times as long as reading and folding some rows took it rests before the next ones."""
_log = logging.getLogger("watchroom")


def open_fold(journal: Journal, until: int | None = None) -> Fold:
    """A fold that has taken in the rows of ``journal`` up to its newest usable snapshot, or the newest one at
    or before row ``until``; none where there is no such snapshot. Raises `JournalError`."""
    while (kept := journal.snapshot(_NAME, as_of=until)) is not None:
        fold = _load(journal, kept)
        if fold is not None:
            return fold
        until = kept.seq - 1
    return Fold(journal.content, journal.row)


def newest_snapshot(journal: Journal) -> int:
    """The row up to which the newest snapshot of ``journal`` goes, 0 where there is none. It is not checked.
    Raises `JournalError`."""
    kept = journal.snapshot(_NAME)
    return 0 if kept is None else kept.seq


def read_model(journal: Journal, until: int) -> Model:
    """The model of ``journal`` as of row ``until``: what the dashboard shows of that moment. Raises
    `JournalError`."""
    fold = open_fold(journal, until)
    while rows := journal.rows(fold.seq, until=until, limit=_BATCH):
        fold.apply(rows)
    return fold.model()


def keep_snapshot(journal: Journal, fold: Fold) -> None:
    """Keep a snapshot of ``fold``, of rows of ``journal``. Raises `JournalError`."""
    text = json.dumps(fold.dump(), separators=(",", ":")).encode()
    packed = zlib.compress(text, 1)
    journal.keep_snapshot(_NAME, fold.seq, sha256(packed).digest() + packed)


def _load(journal: Journal, kept: Snapshot) -> Fold | None:
    """The fold that was ``kept``, None where it is damaged or of another journal."""
    checksum, packed = kept.data[:32], kept.data[32:]
    try:
        if sha256(packed).digest() != checksum:
            raise ValueError("another checksum")
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("too large, or cut short")
        fold = Fold.load(journal.content, journal.row, cast("Json", json.loads(text)))
        if fold.newest_row is None or fold.newest_row != journal.row(kept.seq):
            raise ValueError("of another journal")
    except (ValueError, RecursionError, zlib.error) as error:
        _log.warning("the snapshot at row %d is passed over: %s", kept.seq, error)
        return None
    return fold


def keep_missing(journal: Journal, closing: Event, rows: int = SNAPSHOT_ROWS) -> int:
    """Keep the snapshots of ``journal`` that are missing since the newest one, one after every ``rows`` rows,
    if nobody else does: with a quarter of a core, until ``closing`` is set. Returns up to which row none is
    missing then, 0 where somebody else does. Raises `JournalError`."""
    with journal.claim(CLAIM) as is_claimed:
        if not is_claimed:
            return 0
        fold = open_fold(journal)
        for boundary in range((fold.seq // rows + 1) * rows, journal.last_seq() + 1, rows):
            if not _fold_until(journal, fold, boundary, closing):
                break
            keep_snapshot(journal, fold)
        return fold.seq


def _fold_until(journal: Journal, fold: Fold, until: int, closing: Event) -> bool:
    """Whether ``fold`` took in all rows up to ``until`` before ``closing`` was set."""
    while not closing.is_set():
        began = time.monotonic()
        rows = journal.rows(fold.seq, until=until, limit=_CHUNK)
        if not rows:
            return True
        fold.apply(rows)
        closing.wait(_REST * (time.monotonic() - began))
    return False
