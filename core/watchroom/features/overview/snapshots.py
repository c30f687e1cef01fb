"""Snapshots of the fold: writes snapshots, and starts a fold from a snapshot.

A snapshot is used only if its checksum, its format and its last row are correct. Otherwise the fold begins at
the snapshot before it. As ``python -m watchroom.features.overview.snapshots``, this module writes the missing
snapshots of a journal in a child process. It reads its job as one line of JSON, and stops early when its
standard input ends. It prints the row up to which no snapshot is missing. The child process is needed because
packing a snapshot fragments the interpreter's memory: 18 MB for the first snapshot, and up to 1 MB for each
further snapshot, are never freed.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import zlib
from contextlib import closing
from hashlib import sha256
from threading import Event
from typing import Final, cast

from watchroom.errors import JournalError
from watchroom.features.overview.fold import FORMAT, Fold
from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal, Snapshot, open_journal
from watchroom.kernel.journal.side_stores import SNAPSHOT_ROWS
from watchroom.model import Json
from watchroom.platform.child_process import run_module, watch_parent

CLAIM: Final = "snapshots"
"""The key that a process claims while it writes snapshots."""
_NAME: Final = f"model/{FORMAT}"
_MAX_BYTES: Final = 512 * 1024 * 1024
"""Maximum size of an unpacked snapshot, in bytes."""
_CHUNK: Final = 1000
_BATCH: Final = 5000
_REST: Final = 3
"""Pause between batches, as a multiple of the time for reading and folding a batch."""
_log = logging.getLogger("watchroom")


def open_fold(journal: Journal, until: int | None = None) -> Fold:
    """Return a fold of ``journal`` that begins at its newest usable snapshot, or at the newest snapshot up to
    row ``until``. It is empty if there is no such snapshot. Raise `JournalError`."""
    while (kept := journal.snapshots.newest(_NAME, as_of=until)) is not None:
        fold = _load(journal, kept)
        if fold is not None:
            return fold
        until = kept.seq - 1
    return Fold(journal.content, journal.row)


def newest_snapshot(journal: Journal) -> int:
    """Return the number of the last row in the newest snapshot of ``journal``, 0 if there is none. The
    snapshot is not checked. Raise `JournalError`."""
    kept = journal.snapshots.newest(_NAME)
    return 0 if kept is None else kept.seq


def read_model(journal: Journal, until: int) -> Model:
    """Return the model of ``journal`` as of row ``until``, as the dashboard would show it. Raise
    `JournalError`."""
    fold = open_fold(journal, until)
    while rows := journal.rows(fold.seq, until=until, limit=_BATCH):
        fold.apply(rows)
    return fold.model()


def keep_snapshot(journal: Journal, fold: Fold) -> None:
    """Write a snapshot of ``fold`` to ``journal``. Raise `JournalError`."""
    text = json.dumps(fold.dump(), separators=(",", ":")).encode()
    packed = zlib.compress(text, 1)
    journal.snapshots.keep(_NAME, fold.seq, sha256(packed).digest() + packed)


def _load(journal: Journal, kept: Snapshot) -> Fold | None:
    """Return the fold in the snapshot ``kept``, None if it is damaged or belongs to another journal."""
    checksum, packed = kept.data[:32], kept.data[32:]
    try:
        if sha256(packed).digest() != checksum:
            raise ValueError("another checksum")
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _MAX_BYTES)
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
    """Write the missing snapshots of ``journal`` after the newest, unless another process does. This uses a
    quarter of a core.

    - ``closing``: ends the work early when set.
    - ``rows``: the number of rows between two snapshots.

    Return the row up to which no snapshot is missing, 0 if another process is writing snapshots. Raise
    `JournalError`.
    """
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
    """Apply all rows up to ``until`` to ``fold``. Return False if ``closing`` was set before the end."""
    while not closing.is_set():
        began = time.monotonic()
        rows = journal.rows(fold.seq, until=until, limit=_CHUNK)
        if not rows:
            return True
        fold.apply(rows)
        closing.wait(_REST * (time.monotonic() - began))
    return False


def keep_missing_apart(journal: Journal, address: str, stopping: Event, rows: int = SNAPSHOT_ROWS) -> int:
    """Write the missing snapshots as `keep_missing` does, in a child process.

    Args:
        journal: the journal.
        address: the journal's address for the child, as for `open_journal`.
        stopping: when set, the child is asked to end, and killed after 5 seconds.
        rows: rows between two snapshots.

    Returns:
        The row up to which no snapshot is missing, 0 if another process is writing snapshots.

    Raises:
        JournalError: the child failed; with the last line of its standard error.
    """
    if journal.is_claimed(CLAIM):
        return 0
    newest = newest_snapshot(journal)
    if journal.last_seq() - newest < rows:
        # Otherwise, every process with the open journal would start a child that has nothing to do.
        return newest
    job = json.dumps({"journal": address, "rows": rows}).encode()
    try:
        done = run_module(__name__, job=job, stopping=stopping)
    except OSError as error:
        raise JournalError(reason=f"snapshots: {error.strerror}") from error
    if done.status != 0:
        raise JournalError(reason=f"snapshots: a process ended with status {done.status}: {done.last_error}")
    return int(done.output)


def main() -> int:
    """Write the snapshots of the job on standard input. Return the exit status."""
    stopping = Event()
    job = json.loads(watch_parent(stopping.set))
    with closing(open_journal(job["journal"])) as journal:
        print(keep_missing(journal, stopping, job["rows"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
