"""What readers of a journal keep beside it so that they need not begin at its first row. Derived: it may be
deleted at any moment, and costs only time then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

SNAPSHOT_ROWS: Final = 50_000
"""After so many rows a snapshot is kept."""
MOST_SNAPSHOTS: Final = 64
"""So many snapshots of one format are kept; of old ones fewer than of new ones."""


class Snapshot(NamedTuple):
    """What a reader kept in ``data`` once it had read all rows up to ``seq``."""

    seq: int
    data: bytes


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
