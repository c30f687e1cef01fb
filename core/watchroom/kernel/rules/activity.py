"""Activity: the number of rows in each bucket of 5 seconds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BUCKET_SECONDS: Final = 5
BUCKETS: Final = 24
"""The number of newest buckets that are kept: two minutes."""


def bucket_of(time_ns: int) -> int:
    """Return the number of the bucket that contains ``time_ns`` (nanoseconds since the epoch)."""
    return time_ns // (BUCKET_SECONDS * 1_000_000_000)


def count_activity(activity: dict[int, int], time_ns: int) -> None:
    """Count a row of ``time_ns`` (nanoseconds since the epoch) in ``activity``, and drop old buckets."""
    bucket = bucket_of(time_ns)
    if bucket not in activity:
        for old in [each for each in activity if each <= bucket - BUCKETS]:
            del activity[old]
    activity[bucket] = activity.get(bucket, 0) + 1


def sparkline_counts(activity: Mapping[int, int], now: int, buckets: int = BUCKETS) -> list[int]:
    """Return the counts of the last ``buckets`` buckets of ``activity`` up to ``now`` (nanoseconds since the
    epoch), oldest first."""
    newest = bucket_of(now)
    return [activity.get(bucket, 0) for bucket in range(newest - buckets + 1, newest + 1)]


def put_first(actor: str, actors: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``actors`` with ``actor`` moved to the front, so that the most recent actor comes first."""
    return actors if actors[:1] == (actor,) else (actor, *(each for each in actors if each != actor))
