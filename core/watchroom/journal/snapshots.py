"""What readers of a journal keep beside it so that they need not begin at its first row. Derived: it may be
deleted at any moment, and costs only time then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

SNAPSHOT_ROWS: Final = 2_000
"""After so many rows a snapshot is kept."""
MOST_SNAPSHOTS: Final = 512
"""So many snapshots of one format are kept at most; of old ones fewer than of new ones."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""So many bytes they have at most, if all are as large as the newest: then there are fewer."""
FEWEST_SNAPSHOTS: Final = 8
"""So many are kept however large they are."""


class Snapshot(NamedTuple):
    """What a reader kept in ``data`` once it had read all rows up to ``seq``."""

    seq: int
    data: bytes


def most_snapshots(size: int) -> int:
    """How many snapshots are kept when the newest one has ``size`` bytes."""
    return max(FEWEST_SNAPSHOTS, min(MOST_SNAPSHOTS, MOST_BYTES // max(1, size)))


def thin_out(seqs: Sequence[int], most: int = MOST_SNAPSHOTS) -> list[int]:
    """Which of the snapshots at ``seqs``, in ascending order, go so that at most ``most`` stay: those whose
    neighbours are the closest for how long ago they are. The first and the newest two stay (``most`` > 2)."""
    kept = list(seqs)
    dropped = []
    while len(kept) > most:
        newest = kept[-1]
        gaps = [((kept[n + 1] - kept[n - 1]) / (newest - kept[n]), kept[n]) for n in range(1, len(kept) - 2)]
        _, seq = min(gaps)
        kept.remove(seq)
        dropped.append(seq)
    return dropped
