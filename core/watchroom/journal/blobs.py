"""What is kept of files that are no texts: their bytes, by SHA-256, the newest of them.

A journal keeps them beside its rows, so that a revert can bring them back. Only so many are kept, and no row
tells which: of what is gone the rows still have the checksum and the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

BLOBS_NAME: Final = "blobs.db"
"""The file of an embedded journal's blobs, beside it."""
MOST_BYTES: Final = 1024**3
"""So many bytes of blobs are kept at most; the oldest go first."""
LEAST_COUNTED: Final = 4096
"""A blob counts as so many bytes however few it has, which bounds their number."""


def counted_size(size: int) -> int:
    """As how many bytes a blob of ``size`` bytes counts."""
    return max(size, LEAST_COUNTED)


def too_many(oldest: Iterable[tuple[str, int]], counted: int, most: int = MOST_BYTES) -> Iterator[str]:
    """Which of the blobs go (SHA-256 and size of each, the ``oldest`` first) so that of the ``counted`` bytes
    that they count as at most ``most`` stay."""
    for sha256, size in oldest:
        if counted <= most:
            return
        counted -= counted_size(size)
        yield sha256
