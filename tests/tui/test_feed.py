"""The threads that bring the journal to the screen survive errors and unexpected rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import Queue
from threading import Event

import pytest
from clock import HOUR
from watchroom.errors import JournalBusy
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note, Row
from watchroom_tui.services import feed
from watchroom_tui.services.feed import Feed
from watchroom_tui.services.timeline_feed import Moment, TimelineFeed

PATIENCE = 20


class BusyOnce(SqliteJournal):
    """A journal that fails once when asked for the rows after the first."""

    failures = 0

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        if after == 1 and not self.failures:
            self.failures += 1
            raise JournalBusy(seconds=10)
        return super().rows(after, until=until, limit=limit)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[BusyOnce]:
    with closing(BusyOnce(tmp_path / "journal.db")) as opened:
        opened.append([note(1)])
        yield opened


def note(number: int) -> Note:
    return Note("alice", "look", "collab", f"{number}.md")


def test_the_dashboard_is_fed_after_a_journal_was_busy(
    journal: BusyOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_RETRY_SECONDS", 0.01)
    shown: Queue[int] = Queue()
    following = Feed(journal, lambda model, _: shown.put(model.seq))
    following.start()
    try:
        assert shown.get(timeout=PATIENCE) == 1
        journal.append([note(2)])
        while shown.get(timeout=PATIENCE) != 2:
            pass
    finally:
        following.stop()
    assert journal.failures == 1


class AnHourAhead(SqliteJournal):
    """A journal whose clock is an hour ahead of this machine's, and that counts who reads it."""

    readings = 0

    def now(self) -> int:
        self.readings += 1
        return super().now() + HOUR


def test_the_time_of_the_journal_is_known_without_reading_it(tmp_path: Path) -> None:
    with closing(AnHourAhead(tmp_path / "journal.db")) as journal:
        journal.append([note(1)])
        following = Feed(journal, lambda *_: None)
        following.read_initial_model()
        assert journal.readings == 1
        before = time.time_ns() + HOUR
        assert abs(following.now() - before) < HOUR // 60
        assert journal.readings == 1


def test_the_timeline_goes_to_the_next_moment_after_one_failed(journal: BusyOnce) -> None:
    journal.append([note(number) for number in range(2, 6)])
    moments: Queue[Moment] = Queue()
    timeline = TimelineFeed(journal, moments.put)

    failed = Event()

    def fail(_: int) -> int:
        failed.set()
        raise ValueError("an unexpected row")

    try:
        timeline.go(fail)
        assert failed.wait(PATIENCE)
        timeline.go(lambda _: 4)
        while moments.get(timeout=PATIENCE).seq != 4:
            pass
    finally:
        timeline.stop()
