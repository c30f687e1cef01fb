"""The Merkle tree over a journal's rows. With a snapshot, the rows before it need not be read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from watchroom.algorithms.merkle import HASH_BYTES, Frontier, GrowingTree
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_leaf import has_leaf, hash_row
from watchroom.model import Row

FORM: Final = "tree/1"
"""The format of snapshots. Change it whenever leaves or frontiers are computed differently."""
SNAPSHOT_ROWS: Final = 50_000
"""Number of rows without a seal after which a snapshot is stored."""
_NUMBER: Final = 8
_log = logging.getLogger("watchroom")


class JournalTree:
    """The tree over the rows of a journal up to ``seq``, the last row with a leaf."""

    def __init__(self, tree: GrowingTree | None = None, seq: int = 0) -> None:
        self._tree = tree or GrowingTree()
        self._seq = self._leaf_seq = seq

    @property
    def seq(self) -> int:
        """The number of the last row that was read."""
        return self._seq

    @property
    def leaf_seq(self) -> int:
        """The number of the last row that has a leaf."""
        return self._leaf_seq

    @property
    def size(self) -> int:
        """The number of leaves."""
        return self._tree.size

    def root(self) -> bytes:
        """Return the root over all rows so far."""
        return self._tree.root()

    def add(self, row: Row) -> bool:
        """Add ``row``, the next row. Return whether it became a leaf."""
        self._seq = row.seq
        if not has_leaf(row):
            return False
        self._tree.add(hash_row(row))
        self._leaf_seq = row.seq
        return True

    def keep(self, journal: Journal) -> None:
        """Store a snapshot of this tree at its last leaf. Raise `JournalError`."""
        size, roots = self._tree.frontier
        row = journal.row(self._leaf_seq)
        if row is None:
            return
        data = size.to_bytes(_NUMBER, "big") + hash_row(row) + b"".join(roots)
        journal.snapshots.keep(FORM, self._leaf_seq, sha256(data).digest() + data)


def open_tree(journal: Journal, until: int | None = None) -> JournalTree:
    """Return the newest snapshot of the tree at or before row ``until`` (default: the last), else an empty
    tree.

    A snapshot is checked for damage, and for belonging to this journal. It does not prove that earlier rows
    are unchanged. For that, start with an empty tree. Raise `JournalError`.
    """
    while (kept := journal.snapshots.newest(FORM, as_of=until)) is not None:
        tree = _load(journal, kept.seq, kept.data)
        if tree is not None:
            return tree
        _log.warning("the snapshot of the tree at row %d is damaged and skipped", kept.seq)
        until = kept.seq - 1
    return JournalTree()


def _load(journal: Journal, seq: int, data: bytes) -> JournalTree | None:
    checksum, body = data[:HASH_BYTES], data[HASH_BYTES:]
    head = _NUMBER + HASH_BYTES
    row = journal.row(seq)
    if sha256(body).digest() != checksum or len(body) < head or row is None:
        return None
    size, last, rest = int.from_bytes(body[:_NUMBER], "big"), body[_NUMBER:head], body[head:]
    if last != hash_row(row) or len(rest) != size.bit_count() * HASH_BYTES:
        return None
    roots = tuple(rest[start : start + HASH_BYTES] for start in range(0, len(rest), HASH_BYTES))
    return JournalTree(GrowingTree(Frontier(size, roots)), seq)


def read_rows(
    journal: Journal,
    tree: JournalTree,
    until: int,
    is_running: Callable[[], bool] = lambda: True,
    on_leaf: Callable[[Row], None] = lambda _: None,
    batch: int = 1000,
) -> bool:
    """Read rows into ``tree`` up to row ``until``. Return whether all rows were read. Raise `JournalError`.

    - ``is_running``: called before each batch; reading stops when it returns False.
    - ``on_leaf``: called with each row that became a leaf.
    """
    while tree.seq < until:
        if not is_running():
            return False
        rows = journal.rows(tree.seq, until=until, limit=batch)
        if not rows:
            break
        for row in rows:
            if tree.add(row):
                on_leaf(row)
    return True
