"""All screens show local time, with its offset beside a single time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tui.driver import past
from tui.recorded import recorded


@pytest.fixture(autouse=True)
def _vienna(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # As a rule, because not every machine has the names of time zones.
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


async def test_header_lists_and_details_show_local_time(tmp_path: Path) -> None:
    with closing(recorded(tmp_path)) as journal:
        async with past(journal, journal.last_seq()) as user:
            await user.sees("2026-01-01 13:00:00 UTC+01:00")
            await user.goes_to("8", "activity")
            await user.until(lambda: user.list("rows").items, "the rows")
            await user.sees("13:00:00 human:dana")
            await user.press("enter")
            await user.sees("· UTC+01:00", "2026-01-01 13:00:00.000")
            assert not user.shows("12:00:00")
