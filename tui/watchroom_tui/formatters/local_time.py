"""Times for people in local time. Programs get times in ISO 8601 and UTC."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, TypeAlias

from watchroom.model import utc_datetime

Precision: TypeAlias = Literal["minutes", "seconds", "milliseconds"]


def local_time(time_ns: int, precision: Precision = "seconds") -> str:
    """Return ``time_ns`` (nanoseconds since the epoch) as ``2026-01-31 09:30:00`` in local time. Callers show
    the offset once beside such times (`utc_offset`)."""
    return _local(time_ns).replace(tzinfo=None).isoformat(" ", precision)


def local_clock(time_ns: int) -> str:
    """Return the time of day of ``time_ns`` (nanoseconds since the epoch) as ``09:30:00`` in local time."""
    return f"{_local(time_ns):%H:%M:%S}"


def local_date(time_ns: int) -> str:
    """Return the date of ``time_ns`` (nanoseconds since the epoch) as ``2026-01-31`` in local time."""
    return _local(time_ns).date().isoformat()


def start_of_day(time_ns: int) -> int:
    """Return the start of the local day of ``time_ns``. Both are nanoseconds since the epoch."""
    midnight = _local(time_ns).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return int(midnight.timestamp()) * 1_000_000_000


def zoned_time(time_ns: int, precision: Precision = "seconds") -> str:
    """Return ``time_ns`` (nanoseconds since the epoch) as ``2026-01-31 09:30:00+01:00`` (RFC 3339): local
    time with its offset."""
    return _local(time_ns).isoformat(" ", precision)


def utc_offset(time_ns: int) -> str:
    """Return the offset of local time from UTC at ``time_ns`` (nanoseconds since the epoch) as
    ``UTC+01:00``."""
    return f"UTC{_local(time_ns).isoformat()[-6:]}"


@contextmanager
def use_utc() -> Iterator[None]:
    """Use UTC as local time within the context, for shown and entered times, in this process and its child
    processes. Call it only in the main thread, before other threads start."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC0"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _local(time_ns: int) -> datetime:
    # Use the offset of the shown moment, not the present offset.
    return utc_datetime(time_ns).astimezone()
