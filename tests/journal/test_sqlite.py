"""The embedded journal conforms; and what it promises of its file: rows that nothing changes, large contents once."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest
from evidence import all_rows
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from journal.conformance import (
    LARGE,
    BlobConformance,
    Conformance,
    JournalMachine,
    SnapshotConformance,
    run_against_the_model,
)
from watchroom.errors import JournalError
from watchroom.journal import Journal, Snapshot, SqliteJournal
from watchroom.journal.sqlite import INLINE_BYTES
from watchroom.journal.sqlite.read_only import ReadOnlyJournal
from watchroom.model import Write
from watchroom.platforms import Platform

WRITE_UNTIL_KILLED = """
import sys
from watchroom.journal import SqliteJournal
from watchroom.model import Note, Write

journal = SqliteJournal(sys.argv[1])
n = 0
while True:
    path = "shared" if n % 2 else f"{sys.argv[2]}/{n}"
    drafts = [Write(sys.argv[2], "t", "collab", path, "x" * (70_000 if n % 7 == 0 else 10), key=f"{n}"),
              Note(sys.argv[2], "t", "collab", path)]
    print(*(each.row.seq for each in journal.append(drafts)), flush=True)
    n += 1
"""


class SqliteMachine(JournalMachine):
    @rule(sql=st.sampled_from(("UPDATE rows SET message = 'x'", "DELETE FROM rows")))
    def meddle_with_rows(self, sql: str) -> None:
        if self.model.rows:
            self.meddle(sql)

    @rule(sql=st.sampled_from(("UPDATE contents SET content = 'x'", "DELETE FROM contents")))
    def meddle_with_contents(self, sql: str) -> None:
        if any(row.draft.content in LARGE for row in self.model.rows):
            self.meddle(sql)

    def meddle(self, sql: str) -> None:
        connection = sqlite3.connect(self.folder / "journal.db", isolation_level=None)
        try:
            with pytest.raises(sqlite3.IntegrityError, match="immutable"):
                connection.execute(sql)
        finally:
            connection.close()

    @invariant()
    def large_contents_are_kept_once(self) -> None:
        connection = sqlite3.connect(self.folder / "journal.db")
        try:
            ((apart,),) = connection.execute("SELECT count(*) FROM contents").fetchall()
            ((longest,),) = connection.execute(
                "SELECT ifnull(max(length(cast(content AS blob))), 0) FROM rows"
            ).fetchall()
        finally:
            connection.close()
        assert apart == len({kept.draft.content for kept in self.model.rows} & set(LARGE))
        assert longest <= INLINE_BYTES


def open_file(folder: Path) -> Journal:
    return SqliteJournal(folder / "journal.db")


def test_the_embedded_journal_answers_as_a_plain_list_of_rows_would() -> None:
    run_against_the_model(open_file, SqliteMachine, is_durable=True, examples=30)


class TestSqlite(Conformance, SnapshotConformance, BlobConformance):
    @pytest.fixture
    def journal(self, tmp_path: Path, platform: Platform) -> Iterator[Journal]:
        journal = SqliteJournal(tmp_path / "journal.db", platform)
        yield journal
        journal.close()


def test_what_was_acknowledged_stands_when_writers_are_killed(tmp_path: Path) -> None:
    """Several processes write, and are killed at random; a reader sees rows in order, and none is lost."""
    journal = open_file(tmp_path)
    acknowledged: set[int] = set()
    seen: list[int] = []
    random = Random(5)
    for _ in range(3):
        command = [sys.executable, "-c", WRITE_UNTIL_KILLED, str(tmp_path / "journal.db")]
        writers = [
            subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("alice", "bob")
        ]
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(random.randrange(1, 30)):
                writer.stdout.readline()
                seen += [row.seq for row in journal.rows(seen[-1] if seen else 0)]
        for writer in writers:
            writer.kill()
        for writer in writers:
            # A line that was cut off acknowledges nothing.
            lines = writer.communicate()[0].split("\n")[:-1]
            acknowledged |= {int(seq) for line in lines for seq in line.split()}
    seen += [row.seq for row in journal.rows(seen[-1], limit=100_000)]
    rows = all_rows(journal)
    assert seen == [row.seq for row in rows]
    assert acknowledged <= set(seen)
    assert journal.problems() == []
    shared = journal.history("collab", "shared")
    assert [row.version for row in shared] == list(range(1, len(shared) + 1))
    # What was appended with a key is known by it, whoever was killed meanwhile.
    keyed = [(row.actor, row.detail["idempotency_key"]) for row in rows if "idempotency_key" in row.detail]
    assert len(keyed) == len(set(keyed))
    journal.close()


def test_snapshots_lie_beside_the_journal_and_a_damaged_or_deleted_file_of_them_costs_only_time(
    tmp_path: Path,
) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.keep_snapshot("f/1", 10, b"ten")
        derived = tmp_path / "derived.db"
        derived.write_bytes(b"no database at all" * 100)
        assert journal.snapshot("f/1") is None
        journal.keep_snapshot("f/1", 20, b"twenty")
        assert journal.snapshot("f/1") == Snapshot(20, b"twenty")
        derived.unlink()
        assert journal.snapshot("f/1") is None
        journal.keep_snapshot("f/1", 30, b"thirty")
        assert journal.snapshot("f/1") == Snapshot(30, b"thirty")
    with closing(ReadOnlyJournal(tmp_path / "journal.db")) as journal, pytest.raises(JournalError):
        journal.keep_snapshot("f/1", 40, b"forty")


@contextmanager
def failing_disk(wal: Path, *, times: int | None) -> Iterator[None]:
    """The disk takes nothing more beyond the end of the log, so many ``times`` (None: each time)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def work_again(*_: object) -> None:
        nonlocal times
        times = None if times is None else times - 1
        if times == 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    before = signal.signal(signal.SIGXFSZ, work_again)
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_commit_that_the_disk_fails_once_is_written_again_and_one_that_fails_twice_is_no_row(
    tmp_path: Path,
) -> None:
    wal = tmp_path / "journal.db-wal"
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.append([Write("ann", "t", "collab", "first", "1")])
        with failing_disk(wal, times=1):
            (row, _), *_ = journal.append([Write("ann", "t", "collab", "second", "2" * 9000)])
        assert [row.version, journal.content(row.seq)] == [1, "2" * 9000]
        with failing_disk(wal, times=None), pytest.raises(JournalError):
            journal.append([Write("ann", "t", "collab", "third", "3" * 90_000)])
        journal.append([Write("ann", "t", "collab", "fourth", "4")])
        assert [each.path for each in all_rows(journal)] == ["first", "second", "fourth"]
        assert journal.problems() == []
