"""Which snapshots are kept, of those that cost only time."""

from __future__ import annotations

import pytest
from watchroom.kernel.journal.side_stores import excess_snapshots, max_snapshots


@pytest.mark.parametrize(
    ("size", "most"),
    [(0, 512), (1, 512), (2**17, 512), (2**17 + 1, 511), (2**22, 16), (2**23 - 1, 8), (2**23, 8), (2**30, 8)],
)
def test_at_most_512_and_64_mb_of_snapshots_are_kept_and_8_in_any_case(size: int, most: int) -> None:
    assert max_snapshots(size) == most


@pytest.mark.parametrize(
    ("seqs", "most", "dropped"),
    [
        ([], 3, []),
        ([10, 20, 30], 3, []),
        ([10, 20, 30, 40], 3, [20]),
        # Of the closest that go first it is the one that is longest ago for its gap.
        ([10, 20, 30, 40, 50], 4, [20]),
        ([10, 20, 40, 41, 50], 4, [20]),
        ([10, 20, 40, 45, 50, 60], 5, [45]),
        ([10, 30, 31, 32, 90, 99], 4, [31, 30]),
        # The newest two stay, though the second of them stands closer to its neighbours.
        ([0, 60, 61, 100], 3, [60]),
        ([0, 50, 90, 95, 96, 100], 5, [95]),
    ],
)
def test_those_go_whose_neighbours_are_the_closest_for_how_long_ago_they_are(
    seqs: list[int], most: int, dropped: list[int]
) -> None:
    assert excess_snapshots(seqs, most) == dropped
