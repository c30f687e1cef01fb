"""The background work of a process: two threads, batched jobs, and timers that delay neither rows nor jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from calls import ok
from memory_journal import MemoryJournal
from watchroom import Toolbox, Workspace
from watchroom.kernel.background import EVERY_ROW, Background
from watchroom.model import Note

LONG = 3600.0
PATIENCE = 20
NOTE = Note("alice", "look", "collab", "a")


@pytest.fixture
def journal() -> Iterator[MemoryJournal]:
    with closing(MemoryJournal()) as journal:
        yield journal


@pytest.fixture
def background(journal: MemoryJournal) -> Iterator[Background]:
    with closing(Background(journal)) as background:
        yield background


def test_a_job_that_is_due_earlier_does_not_wait_for_one_that_is_due_later(background: Background) -> None:
    done: list[str] = []
    is_done = Event()

    def soon() -> None:
        done.append("soon")
        is_done.set()

    background.schedule("late", lambda: done.append("late"), LONG)
    background.schedule("soon", soon, 0.0)
    assert is_done.wait(PATIENCE)
    assert done == ["soon"]
    background.close()
    assert done == ["soon", "late"], "closing runs what is scheduled"


def test_requests_with_one_key_are_one_run(background: Background) -> None:
    done: list[int] = []
    for number in range(100):
        background.schedule("files", lambda number=number: done.append(number), LONG)  # type: ignore[misc]
    background.flush()
    assert done == [0]
    background.schedule("files", lambda: done.append(100), LONG)
    background.flush()
    assert done == [0, 100]


def test_a_job_that_fails_ends_nothing(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    is_done = Event()

    def fail() -> None:
        raise ValueError("a job's own error")

    background.schedule("bad", fail, 0.0)
    background.schedule("good", is_done.set, 0.01)
    assert is_done.wait(PATIENCE)
    assert "bad failed" in caplog.text


def test_a_slow_timer_delays_neither_rows_nor_jobs(background: Background, journal: MemoryJournal) -> None:
    has_begun, has_row, has_run, may_end = Event(), Event(), Event(), Event()

    def work(closing: Event) -> None:
        has_begun.set()
        may_end.wait(PATIENCE)

    background.repeat("slow", 0.0, work)
    assert has_begun.wait(PATIENCE)
    background.subscribe((EVERY_ROW,), lambda row: has_row.set())
    journal.append([NOTE])
    background.schedule("job", has_run.set)
    assert has_row.wait(PATIENCE)
    assert has_run.wait(PATIENCE)
    may_end.set()


def test_timers_take_turns_and_end_when_they_are_asked_to(background: Background) -> None:
    runs: list[str] = []
    has_both = Event()

    def work(name: str) -> None:
        runs.append(name)
        if {"a", "b"} <= set(runs):
            has_both.set()

    background.repeat("a", 0.0, lambda _: work("a"))
    background.repeat("b", 0.0, lambda _: work("b"))
    assert has_both.wait(PATIENCE)
    background.repeat("until closing", 0.0, lambda closing: closing.wait(LONG))
    background.close()


def test_work_that_follows_rows_is_tried_again(background: Background, journal: MemoryJournal) -> None:
    tries: list[int] = []
    is_done = Event()

    def work() -> None:
        tries.append(journal.last_seq())
        if len(tries) == 1:
            raise OSError("not now")
        is_done.set()

    journal.append([NOTE])
    background.follow("files", work)
    assert is_done.wait(PATIENCE)
    assert tries[:2] == [1, 1]
    is_done.clear()
    journal.append([NOTE])
    assert is_done.wait(PATIENCE)
    assert tries[-1] == 2


def test_a_call_takes_two_threads(root: Path, journal_name: str) -> None:
    # A server's journal has a thread that listens to others.
    listening = {"watchroom-listen"} if journal_name == "postgres" else set()
    before = set(threading.enumerate())
    with Workspace.open(root, agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        ok(alice, "collab_write", filepath="a.md", content="x", message="m")
        ok(alice, "collab_read", filepath="a.md")
        workspace.background.start()
        workspace.subscribe(lambda: None)
        threads = {each.name for each in set(threading.enumerate()) - before}
        assert threads == {"watchroom-loop", "watchroom-worker"} | listening
    assert set(threading.enumerate()) <= before


def test_a_reading_becomes_a_row_without_another_call(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="a.md", content="x", message="m")
    seen = Event()
    with Workspace.open(root, scan=False) as other:
        other.background.subscribe(
            (EVERY_ROW,), lambda row: seen.set() if row.tool == "collab_read" else None
        )
        began = time.monotonic()
        ok(alice, "collab_read", filepath="a.md")
        assert seen.wait(PATIENCE)
        assert time.monotonic() - began < PATIENCE / 2
