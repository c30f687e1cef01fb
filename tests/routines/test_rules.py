"""When a routine is due: at most one run after any pause, and missed runs are counted."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.features.routines.rules import (
    GRACE_SECONDS,
    SECOND,
    Due,
    Trigger,
    find_due,
    is_clock,
    next_slot,
    parse_interval,
)

HOURLY: Final = Trigger("every", 3600)
BERLIN: Final = ZoneInfo("Europe/Berlin")
HOUR: Final = 3600 * SECOND
ADDED: Final = 1_700_000_000 * SECOND


def at(*parts: int) -> int:
    """Return a time in Berlin."""
    return int(datetime(*parts, tzinfo=BERLIN).timestamp()) * SECOND  # type: ignore[arg-type, misc]


def daily(clock: str) -> Trigger:
    return Trigger("daily", at=clock, zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("1h", 3600),
        ("1d", 86_400),
        ("2w", 1_209_600),
        *((each, None) for each in ("4m", "0d", "1", "d", "1y", "400d", "-1d", "1.5h", "")),
    ],
)
def test_an_interval_is_five_minutes_to_a_year(text: str, seconds: int | None) -> None:
    assert parse_interval(text) == seconds


def test_a_time_of_day_has_two_digits_each() -> None:
    assert [is_clock(each) for each in ("07:00", "23:59", "24:00", "7:00", "07:60")] == [
        *(True, True, False, False, False)
    ]


def test_the_first_run_is_due_after_one_interval() -> None:
    assert find_due(HOURLY, ADDED, ADDED, ADDED + HOUR - 1) == Due()
    assert find_due(HOURLY, ADDED, ADDED, ADDED + HOUR) == Due(ADDED + HOUR)
    assert find_due(HOURLY, ADDED, ADDED + HOUR, ADDED + HOUR + 1) == Due()


def test_after_a_sleep_at_most_one_run_is_due() -> None:
    # Awake again shortly after the third hour: it runs, and two are missed.
    assert find_due(HOURLY, ADDED, ADDED, ADDED + 3 * HOUR + SECOND) == Due(
        ADDED + 3 * HOUR, 2, ADDED + 2 * HOUR
    )
    # Too late for the third: all are missed.
    late = ADDED + 3 * HOUR + (GRACE_SECONDS + 1) * SECOND
    assert find_due(HOURLY, ADDED, ADDED, late) == Due(0, 3, ADDED + 3 * HOUR)
    assert find_due(HOURLY, ADDED, ADDED + 3 * HOUR, late) == Due()


def test_daily_times_follow_the_time_zone_through_the_change_of_the_clocks() -> None:
    added = at(2026, 3, 27, 12)
    first = next_slot(daily("07:00"), added, added)
    second = next_slot(daily("07:00"), added, first)
    assert (first, second) == (at(2026, 3, 28, 7), at(2026, 3, 29, 7))
    assert second - first == 23 * HOUR
    added = at(2026, 10, 24, 8)
    assert next_slot(daily("07:00"), added, added) - added == 24 * HOUR


def test_a_time_that_the_clock_skips_or_repeats_is_due_once_on_that_day() -> None:
    added = at(2026, 3, 28, 12)
    skipped = next_slot(daily("02:30"), added, added)
    assert skipped == at(2026, 3, 29, 3, 30)
    assert next_slot(daily("02:30"), added, skipped) == at(2026, 3, 30, 2, 30)
    added = at(2026, 10, 24, 12)
    repeated = next_slot(daily("02:30"), added, added)
    assert next_slot(daily("02:30"), added, repeated) == at(2026, 10, 26, 2, 30)


def test_missed_days_are_counted() -> None:
    added = at(2026, 3, 27, 12)
    noon = at(2026, 3, 31, 12)
    assert find_due(daily("07:00"), added, added, noon) == Due(0, 4, at(2026, 3, 31, 7))


@given(
    st.sampled_from([HOURLY, daily("02:30"), daily("07:00")]), st.lists(st.integers(0, 10**15), max_size=40)
)
def test_no_time_is_handled_twice_or_left_out(trigger: Trigger, steps: list[int]) -> None:
    handled, now, counted = ADDED, ADDED, 0
    for step in steps:
        now += step
        due = find_due(trigger, ADDED, handled, now)
        counted += due.missed + bool(due.slot)
        if due.slot or due.missed:
            assert handled < max(due.slot, due.last_missed) <= now
        handled = max(handled, due.slot, due.last_missed)
        assert next_slot(trigger, ADDED, handled) > now
    expected, slot = 0, next_slot(trigger, ADDED, ADDED)
    while slot <= now:
        expected, slot = expected + 1, next_slot(trigger, ADDED, slot)
    assert counted == expected
