"""Tamper evidence of a long journal: ``python benchmarks/sealing.py [ROWS]``.

Measures the comparison of all rows with the seals, beside the reading that ``verify`` does anyway; the cost
of sealing per row; whether commits wait for it, with two journals in turns; and the cost while idle.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event, Thread

from big_workspace import Team
from measure import Measure, interleaved, middle, ratio, scratch, table
from watchroom.history.seal import Anchors, SealWriter, verify_seals
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note

_BATCH = 2_000
_ROUNDS, _BURST = 20, 100


def measure(rows: int = 1_000_000) -> list[Measure]:
    """Measure with ``rows`` rows, and a seal for each thousand."""
    with scratch() as folder:
        anchors = Anchors(os.path.join(folder, "state"), folder)
        path = os.path.join(folder, "journal.db")
        follower_seconds = _make(path, anchors, rows)
        with closing(SqliteJournal(path)) as journal:
            begin, worked = time.perf_counter(), time.process_time()
            report = verify_seals(journal, anchors.read)
            compared, of_core = time.perf_counter() - begin, time.process_time() - worked
            assert not report.findings
            assert report.newest is not None
            begin = time.perf_counter()
            assert not journal.problems()
            read = time.perf_counter() - begin
            # In parallel, as the command does it.
            begin = time.perf_counter()
            with ThreadPoolExecutor(1) as pool:
                looking = pool.submit(journal.problems)
                verify_seals(journal, anchors.read)
                assert not looking.result()
            together = time.perf_counter() - begin
            writer = _writer(journal, anchors)
            writer.write_due(Event(), at_once=True)
            begin = time.perf_counter()
            for _ in range(1_000):
                writer.write_due(Event())
            rest = (time.perf_counter() - begin) * 1_000
        name = f"{rows:,} rows"
        return [
            Measure(f"comparing {name} with their seals", compared, "s", remark=f"{of_core:.1f} s of a core"),
            Measure(
                f"verify of a journal of {name}",
                together,
                "s",
                10.0,
                remark=f"{read:.1f} s without seals",
            ),
            Measure("following, of a core, a row", follower_seconds / rows * 1e6, "µs", 10.0),
            Measure("asking whether a seal is due, at rest", rest, "µs", remark="every 10 s"),
            _measure_commits(folder),
        ]


def _make(path: str, anchors: Anchors, rows: int) -> float:
    """Create a journal of ``rows`` rows with seals. Return the seconds of CPU for the seals."""
    team, seconds = Team(5, 1), 0.0
    with closing(SqliteJournal(path)) as journal:
        writer = _writer(journal, anchors)
        for first in range(0, rows, _BATCH):
            journal.append([team.draft(n) for n in range(first, min(rows, first + _BATCH))])
            begin = time.thread_time()
            writer.write_due(Event(), at_once=True)
            seconds += time.thread_time() - begin
    return seconds


def _measure_commits(folder: str) -> Measure:
    """Measure commits to a journal that is sealed all the time, against one that is not."""
    note = Note("alice", "look", "collab", "plan.md")
    with (
        _journal_in(folder, "plain") as plain,
        _journal_in(folder, "sealed") as sealed,
        _following(sealed, Anchors(os.path.join(folder, "state"), "sealed")),
    ):
        rounds = interleaved(
            {"plain": lambda _: _append(plain, note), "sealed": lambda _: _append(sealed, note)},
            _ROUNDS,
            _BURST,
        )
    plain_ms, sealed_ms = (middle(rounds[name]) * 1000 for name in ("plain", "sealed"))
    remark = f"{plain_ms:.3f} ms, {sealed_ms:.3f} ms where a thread follows"
    found = ratio(rounds["sealed"], rounds["plain"])
    return Measure(
        "a commit to a journal that is followed, by one that is not", found, "×", 1.05, remark=remark
    )


@contextmanager
def _journal_in(folder: str, name: str) -> Iterator[SqliteJournal]:
    os.mkdir(os.path.join(folder, name))
    with closing(SqliteJournal(os.path.join(folder, name, "journal.db"))) as journal:
        yield journal


@contextmanager
def _following(journal: SqliteJournal, anchors: Anchors) -> Iterator[None]:
    closing_event = Event()
    writer = _writer(journal, anchors)

    def follow() -> None:
        while not closing_event.wait(1.0):
            writer.write_due(closing_event)

    thread = Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        closing_event.set()
        thread.join()


def _append(journal: SqliteJournal, note: Note) -> None:
    journal.append([note])


def _writer(journal: SqliteJournal, anchors: Anchors) -> SealWriter:
    return SealWriter(journal, lambda draft: journal.append([draft])[0], lambda: anchors, lambda: None)


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
