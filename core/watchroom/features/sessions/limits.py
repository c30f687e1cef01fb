"""Finds rate and usage limits in the words of clients and model servers, with the reset time if it was given.

Pure. A reset time is never invented: a time of day without a time zone, a past time, and a time more than
eight days away are unknown. A time or a duration in minutes means the end of the minute, because clients
round down.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from watchroom.validation import extract_first_line

LIMIT_STATUSES: Final = (429, 529)
"""The HTTP statuses of a limit: too many requests, and overloaded."""
MAX_WORDS: Final = 300
"""Maximum characters that are kept of a client's words."""
_MAX_TEXT: Final = 4000
"""Maximum characters of a text that are searched."""
_MAX_PARTS: Final = 8
"""Maximum parts of a duration, such as "2 days 3 hours"."""
_LONGEST: Final = timedelta(days=8)
"""The longest wait. The longest known limit lasts a week."""
_MINUTE: Final = timedelta(minutes=1)
_STALE: Final = timedelta(hours=1)
"""How long a time of day counts as past. After that, it means the next day."""

_LIMIT: Final = re.compile(
    r"rate[ _-]?limit"
    r"|\b(?:usage|session|hour|daily|weekly|monthly|spend(?:ing)?)[ _-]?limit"
    r"|(?:hit|reached|exceed|exceeded) your (?:[\w'-]{1,20} ){0,4}(?:limit|quota)"
    r"|resource[ _](?:has been )?exhausted|exhausted your|(?:usage|daily) quota|quota (?:exceeded|will reset)"
    r"|too many requests|(?:\b|_)overloaded"
    r"|(?:status|error|code|http)[^\w]{0,4}(?:429|529)\b|\(429\)|\b(?:429|529) (?:\{|\[)",
    re.IGNORECASE,
)
_ABOUT_RESET: Final = r"(?:reset|limit reached|again|retry|available|until|regain access)"
_EPOCH: Final = re.compile(rf"{_ABOUT_RESET}[^0-9]{{0,40}}(\d{{13}}|\d{{10}})(?![\d.])", re.IGNORECASE)
_ISO: Final = re.compile(
    rf"{_ABOUT_RESET}[^0-9]{{0,40}}(\d{{4}}-\d\d-\d\d)(?:[T ]| at )(\d\d:\d\d(?::\d\d)?)(?:\.\d{{1,9}})?"
    r" ?(Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:])",
    re.IGNORECASE,
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK: Final = re.compile(
    rf"(?:\b({'|'.join(_MONTHS)})[a-z]{{0,6}}\.? (\d{{1,2}}),? (?:at )?)?"
    r"\b(\d{1,2})(?::([0-5]\d))? ?(?:([ap])m)? ?(?:\(([A-Za-z][A-Za-z0-9_+/-]{1,59})\)|(UTC|GMT)\b)",
    re.IGNORECASE,
)
_FIELD: Final = re.compile(
    r"((?:retry|reset)[a-z_-]{0,40})[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?=\d)", re.IGNORECASE
)
_NAMES_DURATION: Final = ("after", "delay", "second", "_in", "-in")
_PROSE: Final = re.compile(
    r"(?:again|retry|retrying|resets?|available|wait) (?:in |after |for )(?:about )?(?=\d)", re.IGNORECASE
)
_PART: Final = re.compile(
    r"\s{0,2}(?:, ?|and )?(\d{1,9}(?:\.\d{1,12})?) ?"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(r"\d{1,9}(?:\.\d{1,12})?(?![\w.])")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_HEADER_SECONDS: Final = re.compile(r"\d{1,12}(\.\d*)?", re.ASCII)


class RateLimit(NamedTuple):
    """A limit that a client or a model server reported.

    - ``resets``: the reset time in nanoseconds since the epoch, None if it is unknown.
    - ``text``: the first line of the report, at most 300 characters.
    """

    resets: int | None
    text: str


def is_limit(text: str) -> bool:
    """Whether ``text``, the text of an error, reports a rate or usage limit."""
    return _LIMIT.search(text[:_MAX_TEXT]) is not None


def find_limit(text: str, now: int, *, said_at: int | None = None) -> RateLimit | None:
    """Return the limit that ``text``, the text of an error, reports; None if it reports another error.

    - ``now``: the current time in nanoseconds since the epoch.
    - ``said_at``: the time of the report, default ``now``.

    Example::

        find_limit("You've hit your session limit · resets 3pm (Europe/Berlin)", now)
    """
    if not is_limit(text):
        return None
    # A client may report any time. At the ends of the calendar, times cannot be added.
    said = now if said_at is None else max(0, min(said_at, now))
    return RateLimit(_find_future_reset(text, said, now), _words(text))


def limit_of_response(status: int, text: str, retry_after: str, now: int) -> RateLimit | None:
    """Return the limit that a response of a model server reports; None if it reports another error.

    - ``status``: the HTTP status. ``text``: the message of the error.
    - ``retry_after``: the header Retry-After, empty for none. It counts more than the text.
    - ``now``: the current time in nanoseconds since the epoch.
    """
    if status not in LIMIT_STATUSES:
        return None
    seconds = parse_retry_after(retry_after, now / 1e9)
    if seconds is not None:
        return RateLimit(check_reset(now / 1e9 + seconds, now), _words(text))
    return RateLimit(_find_future_reset(text, now, now), _words(text))


def check_reset(reset: float, now: int) -> int | None:
    """Return ``reset`` in nanoseconds since the epoch. None if it is past, or more than eight days away.

    - ``reset``: the reset time in seconds since the epoch.
    - ``now``: the current time in nanoseconds since the epoch.
    """
    if not 0 < reset - now / 1e9 <= _LONGEST.total_seconds():
        return None
    return int(reset * 1000) * 1_000_000


def parse_retry_after(value: str, now: float) -> float | None:
    """Return the seconds from ``now`` (seconds since the epoch) that a header Retry-After asks for.

    0 for a past date. None if ``value`` is neither a number of seconds nor an HTTP date.
    """
    value = value.strip()
    if not value:
        return None
    if _HEADER_SECONDS.fullmatch(value):
        return float(value)
    # Imported here because few servers send a date.
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now)


def _words(text: str) -> str:
    return extract_first_line(text[:_MAX_TEXT], MAX_WORDS)


def _find_future_reset(text: str, said: int, now: int) -> int | None:
    """Return the first reset time in ``text`` that was reported at ``said``, as `check_reset` does."""
    found = _find_reset(text[:_MAX_TEXT], _moment(said))
    return None if found is None else check_reset(found.timestamp(), now)


def _find_reset(text: str, now: datetime) -> datetime | None:
    """Return the first reset time in ``text``. Absolute times count more than times of day and durations."""
    if epoch := _EPOCH.search(text):
        digits = epoch[1]
        return datetime.fromtimestamp(int(digits) / (1000 if len(digits) == 13 else 1), UTC)
    if iso := _ISO.search(text):
        return _parse_iso(iso[1], iso[2], iso[3])
    for clock in _CLOCK.finditer(text):
        if (found := _parse_clock(clock, now)) is not None:
            return found
    for field in _FIELD.finditer(text):
        if any(each in field[1].lower() for each in _NAMES_DURATION):
            plain = 0.001 if field[1].lower().endswith("ms") else 1.0
            seconds = _parse_duration(text, field.end(), plain)
            if seconds is not None:
                return _after(now, seconds)
    if prose := _PROSE.search(text):
        seconds = _parse_duration(text, prose.end())
        return None if seconds is None else _after(now, seconds)
    return None


def _parse_iso(date: str, clock: str, zone: str) -> datetime | None:
    offset = "+00:00" if zone.upper() in ("Z", "UTC", "GMT") else zone
    try:
        found = datetime.fromisoformat(f"{date}T{clock}{offset}")
        return found if clock.count(":") == 2 else found + _MINUTE
    except (ValueError, OverflowError):
        return None


def _parse_clock(found: re.Match[str], now: datetime) -> datetime | None:
    """Return the next time that a time of day in a known zone means, None if it is unknown."""
    month, day, hour, minute, half, name, utc = found.groups()
    zone = _find_zone(utc or name)
    if zone is None or (half is None and minute is None):
        return None
    hours = int(hour) % 12 + (12 if half.lower() == "p" else 0) if half else int(hour)
    if hours > 23 or (half and not 1 <= int(hour) <= 12):
        return None
    local = now.astimezone(zone).replace(minute=int(minute or 0), second=0, microsecond=0)
    if month is None:
        today = local.replace(hour=hours).astimezone(UTC) + _MINUTE
        if today > now:
            return today
        # A stale report names a time that has just passed. It does not mean tomorrow.
        is_stale = now - today <= _STALE
        return None if is_stale else (local + timedelta(days=1)).replace(hour=hours).astimezone(UTC) + _MINUTE
    number = _MONTHS.index(month.lower()) + 1
    for year in (local.year, local.year + 1):
        try:
            date = local.replace(year=year, month=number, day=int(day), hour=hours)
        except ValueError:
            return None
        end = date.astimezone(UTC) + _MINUTE
        if end > now:
            return end
    return None


def _find_zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    if name.upper() in ("UTC", "GMT"):
        return UTC
    # An abbreviation such as EST has several meanings.
    if "/" not in name:
        return None
    try:
        return ZoneInfo(name)
    # Unknown names raise `ZoneInfoNotFoundError` (a KeyError). Invalid file names raise the other errors.
    except (KeyError, ValueError, OSError):
        return None


def _parse_duration(text: str, start: int, plain: float | None = None) -> float | None:
    """Return the seconds of the duration at ``start``, None if there is none.

    ``plain``: the seconds of a unit if the number has no unit; None if it needs one.
    """
    seconds, at, name = 0.0, start, ""
    for _ in range(_MAX_PARTS):
        part = _PART.match(text, at)
        if part is None:
            break
        unit = part[2].lower()
        name = "ms" if unit.startswith(("ms", "milli")) else unit[0]
        seconds += float(part[1]) * _SECONDS_OF[name]
        at = part.end()
    if at > start:
        return seconds + 60 if name == "m" else seconds
    number = _PLAIN.match(text, start)
    return None if number is None or plain is None else float(number[0]) * plain


def _after(now: datetime, seconds: float) -> datetime | None:
    return now + timedelta(seconds=seconds) if seconds <= 2 * _LONGEST.total_seconds() else None


def _moment(time_ns: int) -> datetime:
    return datetime.fromtimestamp(time_ns / 1e9, UTC)
