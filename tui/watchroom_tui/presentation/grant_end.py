"""Parses the end of a grant, as people write it. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from watchroom.features.policy.grants import MAX_SECONDS

_DURATION: Final = re.compile(r"(\d{1,6})([smhd])")
_CLOCK: Final = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_end(text: str, now: datetime) -> int | None:
    """Return the seconds from ``now`` until ``text``: a duration such as ``1h``, or the next ``18:00``; 24:00
    is the end of the day. None for an empty text. Raise ValueError."""
    text = text.strip()
    if not text:
        return None
    if found := _DURATION.fullmatch(text):
        seconds = int(found[1]) * _UNITS[found[2]]
    elif found := _CLOCK.fullmatch(text):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        end = midnight + timedelta(hours=int(found[1]), minutes=int(found[2]))
        end = end if end > now.replace(tzinfo=None) else end + timedelta(days=1)
        seconds = int(end.timestamp() - now.timestamp())
    else:
        raise ValueError(text)
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(text)
    return seconds
