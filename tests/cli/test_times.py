"""People read times in local time, and programs in UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cli.running import Captured, printed, printed_rows, run
from watchroom.model import timestamp
from watchroom.texts import catalogue
from watchroom_cli.arguments.time_argument import nanoseconds
from watchroom_cli.main import OK
from watchroom_tui.formatters.local_time import local_clock, local_time, utc_offset, zoned_time

WINTER = int(datetime(2026, 1, 31, 9, 30, tzinfo=UTC).timestamp()) * 10**9 + 250_000_000
SUMMER = int(datetime(2026, 7, 31, 23, 30, tzinfo=UTC).timestamp() * 1e9)


@pytest.fixture(autouse=True)
def _vienna(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # As a rule, because not every machine has the names of time zones.
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


def test_a_time_is_local_and_names_its_offset_at_that_moment() -> None:
    assert (local_time(WINTER), utc_offset(WINTER)) == ("2026-01-31 10:30:00", "UTC+01:00")
    assert (local_time(SUMMER, "minutes"), utc_offset(SUMMER)) == ("2026-08-01 01:30", "UTC+02:00")
    assert local_clock(SUMMER) == "01:30:00"
    assert zoned_time(WINTER, "milliseconds") == "2026-01-31 10:30:00.250+01:00"


def test_a_printed_time_is_never_rounded_up() -> None:
    assert zoned_time(WINTER - 1, "milliseconds") == "2026-01-31 10:30:00.249+01:00"
    assert timestamp(WINTER - 1) == "2026-01-31T09:30:00.249Z"
    texts = catalogue("en", "watchroom_tui.texts")
    for milliseconds in range(1000):
        moment = WINTER + milliseconds * 1_000_000
        assert nanoseconds(zoned_time(moment, "milliseconds"), texts) == moment


@pytest.mark.parametrize("command", [("log",), ("show", "files"), ("show", "handoffs")])
def test_people_read_local_times_and_programs_utc(
    capsys: Captured, team: str, command: tuple[str, ...]
) -> None:
    name, *view = command
    rows = printed_rows(capsys, "log", team, "--json")
    moments = [datetime.fromisoformat(row["time"]) for row in rows]
    assert all(row["time"].endswith("Z") for row in rows)
    precision = "milliseconds" if name == "log" else "seconds"
    for option, zone in (((), None), (("--utc",), UTC)):
        lines = printed(capsys, name, team, *view, *option).splitlines()[len(view) :]
        assert lines
        known = {moment.astimezone(zone).isoformat(" ", precision) for moment in moments}
        for line in lines:
            assert any(each in line for each in known), line
    assert local_clock(SUMMER) == "01:30:00", "only that command was in UTC"


def test_a_printed_time_can_be_given_back(capsys: Captured, team: str) -> None:
    first, *others = printed(capsys, "log", team).splitlines()
    assert others
    assert printed(capsys, "log", team, "--since", first[:29]).splitlines() == [first, *others]


def test_tokens_are_listed_with_local_times(capsys: Captured, team: str) -> None:
    assert run(capsys, "token", team, "alice", "--days", "1")[0] == OK
    (line,) = printed(capsys, "token", team).splitlines()
    assert "+00:00" in printed(capsys, "token", team, "--utc")
    made, expires = (datetime.fromisoformat(each) for each in line.split("\t")[3:])
    assert (expires - made).total_seconds() == 86_400
    assert "+0" in line
