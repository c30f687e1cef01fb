"""A fold begins at the newest snapshot that can be trusted, and gives the model of all rows all the same."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from memory_journal import MemoryJournal
from projections.folding import folded
from watchroom.errors import JournalError
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.snapshots import CLAIM, keep_missing, keep_missing_apart, open_fold
from watchroom.kernel.journal import Journal, Snapshot, SqliteJournal
from watchroom.kernel.journal.side_stores import (
    MAX_SNAPSHOT_BYTES,
    MAX_SNAPSHOTS,
    MIN_SNAPSHOTS,
    max_snapshots,
)
from watchroom.model import Draft, Note, Write

EVERY = 20


@pytest.fixture(params=["sqlite", "memory", "with gaps"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    with closing(
        SqliteJournal(tmp_path / "journal.db")
        if request.param == "sqlite"
        else MemoryJournal(3 if request.param == "with gaps" else 0)
    ) as journal:
        yield journal


def fill(journal: Journal, count: int = 50) -> None:
    """Appends ``count`` rows: writes of which some are refused, deliveries, and notes."""
    for n in range(count // 5):
        drafts: list[Draft] = [
            Write("alice", "collab_write", "collab", "plan.md", f"{n}"),
            Write("bob", "collab_write", "collab", "plan.md", "late", expected=0),
            Write("alice", "handoff_file", "handoff", f"alice_to_bob/{n}", "x"),
            Note("bob", "acknowledge_handoff", "handoff", f"alice_to_bob/{n // 2}", base=1),
            Note("bob", "save_to_my_workspace", "private", "../x", "denied", "invalid_path"),
        ]
        journal.append(drafts)


def keep(journal: Journal) -> int:
    return keep_missing(journal, Event(), EVERY)


def kept(journal: Journal) -> list[int]:
    """Where folds begin, newest first."""
    found = []
    fold = open_fold(journal)
    while fold.seq:
        found.append(fold.seq)
        fold = open_fold(journal, fold.seq - 1)
    return found


def finished(journal: Journal, fold: Fold, until: int | None = None) -> Fold:
    while rows := journal.rows(fold.seq, until=until):
        fold.apply(rows)
    return fold


def test_snapshots_are_kept_after_every_so_many_rows(journal: Journal) -> None:
    fill(journal)
    keep(journal)
    last = journal.last_seq()
    boundaries = range(EVERY, last + 1, EVERY)
    before = [journal.rows_before(each + 1, limit=1)[0].seq for each in boundaries]
    assert kept(journal) == before[::-1]
    fill(journal)
    keep(journal)
    assert kept(journal)[0] > last - EVERY + 1
    assert kept(journal)[0] > before[-1]


def test_a_fold_from_a_snapshot_gives_the_model_of_all_rows_at_any_moment(journal: Journal) -> None:
    fill(journal)
    keep(journal)
    for until in [*range(0, journal.last_seq(), 7), journal.last_seq()]:
        fold = open_fold(journal, until)
        assert fold.seq <= until
        assert until - fold.seq < EVERY + 4, "it began at the one before"
        assert finished(journal, fold, until).model() == folded(journal, until)


def test_who_has_not_claimed_it_keeps_none(journal: Journal) -> None:
    fill(journal)
    with journal.claim(CLAIM):
        assert keep(journal) == 0
    assert kept(journal) == []
    assert keep(journal) == kept(journal)[0]
    assert kept(journal)


def test_another_process_keeps_the_same_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal, closing(MemoryJournal()) as other:
        fill(journal)
        fill(other)
        assert keep_missing_apart(journal, str(path), Event(), EVERY) == keep(other) > 0
        assert kept(journal) == kept(other) != []
        assert finished(journal, open_fold(journal)).model() == folded(journal)
        # Where none is missing no process is begun, which would fail here.
        assert keep_missing_apart(journal, "unknown://", Event(), EVERY) == kept(journal)[0]


def test_no_other_process_keeps_what_somebody_has_claimed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        fill(journal)
        with journal.claim(CLAIM):
            # Not even its start is tried, which would fail.
            assert keep_missing_apart(journal, "unknown://", Event(), EVERY) == 0
        assert kept(journal) == []


def test_a_process_that_keeps_snapshots_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    path, stopping = tmp_path / "journal.db", Event()
    stopping.set()
    with closing(SqliteJournal(path)) as journal:
        fill(journal, 4_000)
        assert keep_missing_apart(journal, str(path), stopping, EVERY) < journal.last_seq() - EVERY
        assert not journal.is_claimed(CLAIM)


def test_a_process_that_cannot_keep_snapshots_says_why(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        fill(journal)
        with pytest.raises(JournalError, match=r"status 1: .*no journal answers to unknown://"):
            keep_missing_apart(journal, "unknown://", Event(), EVERY)


def repacked(data: bytes, change: Callable[[Any], Any]) -> bytes:
    packed = zlib.compress(json.dumps(change(json.loads(zlib.decompress(data[32:])))).encode())
    return sha256(packed).digest() + packed


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda data: data[:-1],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: repacked(data, lambda dumped: {**dumped, "format": 0}),
        lambda data: repacked(data, lambda dumped: {**dumped, "rows": []}),
        lambda data: repacked(data, lambda _: [[[]]]),
    ],
    ids=["empty", "cut", "flipped", "another format", "no rows", "no object"],
)
def test_a_damaged_snapshot_is_passed_over_and_replaced(spoil: Callable[[bytes], bytes]) -> None:
    journal = MemoryJournal()
    fill(journal)
    keep(journal)
    whole = journal.snapshots.newest(name_of(journal))
    assert whole is not None
    journal.snapshots.keep(name_of(journal), whole.seq, spoil(whole.data))
    assert open_fold(journal).seq == whole.seq - EVERY
    assert finished(journal, open_fold(journal)).model() == folded(journal)
    keep(journal)
    assert journal.snapshots.newest(name_of(journal)) == whole


def test_a_snapshot_of_another_journal_is_passed_over() -> None:
    journal, other = MemoryJournal(), MemoryJournal()
    fill(journal)
    fill(other)
    keep(other)
    foreign = other.snapshots.newest(name_of(other))
    assert isinstance(foreign, Snapshot)
    journal.snapshots.keep(name_of(other), foreign.seq, foreign.data)
    assert open_fold(journal).seq == 0


def name_of(journal: MemoryJournal) -> str:
    (name,) = journal.snapshots.forms
    return name


def test_large_snapshots_are_fewer() -> None:
    assert max_snapshots(1) == MAX_SNAPSHOTS
    assert max_snapshots(MAX_SNAPSHOT_BYTES // 20) == 20
    assert max_snapshots(MAX_SNAPSHOT_BYTES) == MIN_SNAPSHOTS
