"""Times as people read them: in the time zone of this machine. What programs read stays ISO 8601 in UTC."""

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
    """``time_ns`` (nanoseconds since the epoch) as ``2026-01-31 09:30:00`` in local time, for where the
    offset is named once beside it (`utc_offset`)."""
    return _local(time_ns).replace(tzinfo=None).isoformat(" ", precision)


def local_clock(time_ns: int) -> str:
    """The time of day of ``time_ns`` (nanoseconds since the epoch) as ``09:30:00`` in local time."""
    return f"{_local(time_ns):%H:%M:%S}"


def local_date(time_ns: int) -> str:
    """The day of ``time_ns`` (nanoseconds since the epoch) as ``2026-01-31`` in local time."""
    return _local(time_ns).date().isoformat()


def start_of_day(time_ns: int) -> int:
    """When the day of ``time_ns`` began by local time; both are nanoseconds since the epoch."""
    midnight = _local(time_ns).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return int(midnight.timestamp()) * 1_000_000_000


def zoned_time(time_ns: int, precision: Precision = "seconds") -> str:
    """``time_ns`` (nanoseconds since the epoch) as ``2026-01-31 09:30:00+01:00`` (RFC 3339): local time with
    its offset, for where a time stands by itself."""
    return _local(time_ns).isoformat(" ", precision)


def utc_offset(time_ns: int) -> str:
    """The offset of local time from UTC at ``time_ns`` (nanoseconds since the epoch) as ``UTC+01:00``."""
    return f"UTC{_local(time_ns).isoformat()[-6:]}"


@contextmanager
def use_utc() -> Iterator[None]:
    """While this lasts, local time is UTC, in this process and in those that it starts: every time that is
    shown, and every one that is given without an offset. Only in the main thread, before others begin."""
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
    # Summer time or not is decided for the moment shown, not for the present one.
    return utc_datetime(time_ns).astimezone()
