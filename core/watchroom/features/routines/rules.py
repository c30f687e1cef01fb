"""When a routine is due. Pure.

Times are in nanoseconds since the epoch, by the journal's clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

TriggerKind: TypeAlias = Literal["every", "daily", "file", "ref"]
MIN_SECONDS: Final = 300
"""Minimum seconds between the starts of two runs."""
GRACE_SECONDS: Final = 300
"""A run that is due begins at most this many seconds late. After that it is missed."""
MAX_DAYS: Final = 366
"""Maximum days of an interval, and from now until a routine ends."""
SECOND: Final = 1_000_000_000
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_INTERVAL: Final = re.compile(r"([1-9][0-9]{0,6})([mhdw])")
_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class Trigger(NamedTuple):
    """What starts a run.

    - ``every``: each ``seconds`` after the routine was added.
    - ``daily``: each day at ``at`` (``HH:MM``) in the time zone ``zone``.
    - ``file``: the file ``target`` changes.
    - ``ref``: the git ref ``target`` moves.
    """

    kind: TriggerKind
    seconds: int = 0
    at: str = ""
    zone: str = ""
    target: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it depends on the time only."""
        return self.kind in ("every", "daily")


class Due(NamedTuple):
    """The due times that have passed. ``slot``: the due time of the run to begin now, 0 for none. ``missed``:
    the number of missed runs. ``last_missed``: the due time of the newest missed run."""

    slot: int = 0
    missed: int = 0
    last_missed: int = 0


def parse_interval(text: str) -> int | None:
    """Return the seconds of the interval ``text``, such as ``30m``, ``6h``, ``1d`` or ``1w``. None if
    ``text`` is malformed, or the interval is shorter than `MIN_SECONDS` or longer than `MAX_DAYS`."""
    found = _INTERVAL.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    return seconds if MIN_SECONDS <= seconds <= MAX_DAYS * 86_400 else None


def is_clock(text: str) -> bool:
    """Return whether ``text`` is a time of day, ``HH:MM``."""
    return _CLOCK.fullmatch(text) is not None


def is_valid(trigger: Trigger) -> bool:
    """Return whether ``trigger`` is complete, and its interval and time zone exist."""
    if trigger.kind == "every":
        return MIN_SECONDS <= trigger.seconds <= MAX_DAYS * 86_400
    if trigger.kind != "daily":
        return bool(trigger.target)
    try:
        _zone_of(trigger)
    except (ValueError, OSError, KeyError):
        return False
    return is_clock(trigger.at)


def next_slot(trigger: Trigger, added: int, after: int) -> int:
    """Return the first time after ``after`` at which a routine with a timed ``trigger`` is due.

    ``added``: when it was added.
    """
    if trigger.kind == "every":
        interval = trigger.seconds * SECOND
        return added + (max(0, after - added) // interval + 1) * interval
    return _find_day(trigger, after, lambda slot: slot > after, 1)


def find_due(trigger: Trigger, added: int, handled: int, now: int) -> Due:
    """Return which runs of a timed ``trigger`` are due at ``now``: at most one, even after a long sleep.

    - ``added``: when the routine was added.
    - ``handled``: see `watchroom.features.routines.rows.Routine.handled`.
    """
    first = next_slot(trigger, added, max(handled, added))
    if first > now:
        return Due()
    newest = _newest_slot(trigger, added, now)
    count = _count_slots(trigger, first, newest)
    if now - newest > GRACE_SECONDS * SECOND:
        return Due(0, count, newest)
    before = _newest_slot(trigger, added, newest - 1) if count > 1 else 0
    return Due(newest, count - 1, before)


def is_too_early(last_begin: int, now: int) -> bool:
    """Return whether less than `MIN_SECONDS` have passed since ``last_begin``, 0 for none."""
    return bool(last_begin) and now - last_begin < MIN_SECONDS * SECOND


def _newest_slot(trigger: Trigger, added: int, now: int) -> int:
    """Return the last due time at or before ``now``. At least one due time must be after ``added``."""
    if trigger.kind == "every":
        interval = trigger.seconds * SECOND
        return added + (now - added) // interval * interval
    return _find_day(trigger, now, lambda slot: slot <= now, -1)


def _count_slots(trigger: Trigger, first: int, last: int) -> int:
    """Return the number of due times from ``first`` to ``last``, both included."""
    if trigger.kind == "every":
        return (last - first) // (trigger.seconds * SECOND) + 1
    zone = _zone_of(trigger)
    return (_day_of(last, zone) - _day_of(first, zone)).days + 1


def _find_day(trigger: Trigger, near: int, fits: Callable[[int], bool], step: int) -> int:
    """Return the time of day on the first day that fits, beginning at the day before or after ``near``."""
    zone = _zone_of(trigger)
    day = _day_of(near, zone) - timedelta(days=step)
    while not fits(slot := _time_on(day, trigger, zone)):
        day += timedelta(days=step)
    return slot


def _zone_of(trigger: Trigger) -> ZoneInfo:
    # The dashboard reads routines before its first paint, and no time of them.
    from zoneinfo import ZoneInfo

    return ZoneInfo(trigger.zone)


def _day_of(at: int, zone: ZoneInfo) -> date:
    return datetime.fromtimestamp(at // SECOND, zone).date()


def _time_on(day: date, trigger: Trigger, zone: ZoneInfo) -> int:
    """Return the due time on ``day``. A time that the clock skips is moved past the skipped hour. If a time
    occurs twice, the first one counts."""
    at = time.fromisoformat(trigger.at)
    return int(datetime.combine(day, at, zone).timestamp()) * SECOND
