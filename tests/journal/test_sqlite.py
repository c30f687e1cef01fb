"""The embedded journal conforms; and what it promises of its file: rows that nothing changes, large contents once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from threading import Barrier

import pytest
from effort import rounds
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
from journal.disk import failing_disk, meddle
from statements import counted_on_sqlite
from watchroom.errors import JournalError, JournalTooNew
from watchroom.kernel.journal import Journal, RowFilter, Snapshot, SqliteJournal, open_journal, open_to_read
from watchroom.kernel.journal.side_stores import MIN_COUNTED_BYTES, excess_blobs
from watchroom.kernel.journal.sqlite.read_only import ReadOnlyJournal
from watchroom.kernel.journal.sqlite.side_stores import BlobDatabase, PresenceFolder
from watchroom.kernel.journal.sqlite.writer import INLINE_BYTES, last_announced_time
from watchroom.model import Note, Write
from watchroom.platform import Platform
from watchroom.validation import sha256

WRITE_UNTIL_KILLED = """
import sys
from watchroom.kernel.journal import SqliteJournal
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
    run_against_the_model(open_file, SqliteMachine, is_durable=True, examples=rounds(15, 30))


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
        journal.snapshots.keep("f/1", 10, b"ten")
        derived = tmp_path / "derived.db"
        derived.write_bytes(b"no database at all" * 100)
        assert journal.snapshots.newest("f/1") is None
        journal.snapshots.keep("f/1", 20, b"twenty")
        assert journal.snapshots.newest("f/1") == Snapshot(20, b"twenty")
        derived.unlink()
        assert journal.snapshots.newest("f/1") is None
        journal.snapshots.keep("f/1", 30, b"thirty")
        assert journal.snapshots.newest("f/1") == Snapshot(30, b"thirty")
    with closing(ReadOnlyJournal(tmp_path / "journal.db")) as journal, pytest.raises(JournalError):
        journal.snapshots.keep("f/1", 40, b"forty")


def test_a_commit_that_the_disk_fails_once_is_written_again_and_one_that_fails_twice_is_no_row(
    tmp_path: Path,
) -> None:
    wal = tmp_path / "journal.db-wal"
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.append([Write("ann", "t", "collab", "first", "1")])
        with failing_disk(wal.stat().st_size, times=1):
            (row, _), *_ = journal.append([Write("ann", "t", "collab", "second", "2" * 9000)])
        assert [row.version, journal.content(row.seq)] == [1, "2" * 9000]
        with failing_disk(wal.stat().st_size), pytest.raises(JournalError):
            journal.append([Write("ann", "t", "collab", "third", "3" * 90_000)])
        journal.append([Write("ann", "t", "collab", "fourth", "4")])
        assert [each.path for each in all_rows(journal)] == ["first", "second", "fourth"]
        assert journal.problems() == []


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("letter", ["x", "é", "文", "😀"])
def test_a_content_stands_in_its_row_up_to_64_kib_and_apart_from_there_on(
    tmp_path: Path, letter: str, batch: int
) -> None:
    size = len(letter.encode())
    inline = letter * (INLINE_BYTES // size) + "." * (INLINE_BYTES % size)
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        for content in (inline, inline + "."):
            journal.append([Write("ann", "t", "collab", "a", content)] * batch)
        kept = [journal.content(row.seq) for row in journal.rows()]
    assert kept == [inline] * batch + [inline + "."] * batch
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        apart = connection.execute("SELECT content IS NULL FROM rows ORDER BY seq").fetchall()
        ((count,),) = connection.execute("SELECT count(*) FROM contents")
    assert [is_apart for (is_apart,) in apart] == [0] * batch + [1] * batch
    assert count == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"7 1234\n", 1234),
        (b"7 1234", 1234),
        (b"", 0),
        (b"7", 0),
        (b"7 x", 0),
        (b"7 -1", 0),
        (b"7 1234 5", 0),
    ],
)
def test_the_newest_time_is_told_by_the_lock_file_or_by_nobody(
    tmp_path: Path, text: bytes, told: int
) -> None:
    lock = tmp_path / "journal.lock"
    assert last_announced_time(str(lock)) == 0
    lock.write_bytes(text)
    assert last_announced_time(str(lock)) == told


def test_a_clock_that_was_set_back_is_not_behind_the_newest_row(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.append([Write("ann", "t", "collab", "a", "x")])
        later = 2**62
        meddle(tmp_path / "journal.db", "UPDATE rows SET time = ?", later)
        for drafts in ([Write("ann", "t", "collab", "a", "y")], [Note("ann", "t", "collab", "a")]):
            ((row, _),) = journal.append(drafts)
            assert row.time == later
        assert journal.now() == later


def test_a_journal_on_a_full_disk_is_read_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "a b?#%"
    folder.mkdir()
    path = folder / "journal.db"
    with closing(open_to_read(path)) as journal:
        assert type(journal) is SqliteJournal
        journal.append([Write("ann", "t", "collab", "a", "x")])
    with failing_disk(0), closing(open_to_read(path)) as journal:
        rows = journal.rows()
        refusals = []
        for change in (
            lambda: journal.append([Note("ann", "t", "collab", "a")]),
            lambda: journal.snapshots.keep("f/1", 1, b""),
            lambda: journal.blobs.keep([b""]),
        ):
            with pytest.raises(JournalError, match="read only") as refused:
                change()
            refusals.append(refused)
    assert (len(rows), len(refusals)) == (1, 3)
    # SQLite leaves empty files where it tried.
    written = {each.name for each in folder.iterdir() if each.stat().st_size}
    assert written == {"journal.db", "journal.lock"}


def test_rows_that_stand_in_the_log_alone_are_not_passed_over(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.append([Write("ann", "t", "collab", "a", "x")])
        for name in ("journal.db", "journal.db-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
    for opens in (open_to_read, ReadOnlyJournal):
        with failing_disk(0), pytest.raises(JournalError):
            opens(copy / "journal.db")
    with closing(open_to_read(copy / "journal.db")) as journal:
        assert len(journal.rows()) == 1


def test_a_journal_that_is_only_read_is_read_by_any_thread(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append([Write("ann", "t", "collab", "a", "x")])
    with closing(ReadOnlyJournal(path)) as journal, ThreadPoolExecutor(1) as other:
        assert journal.rows() == other.submit(journal.rows).result()


def test_what_is_no_journal_is_not_read_as_one_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 1000)
    with pytest.raises(JournalError, match="not a database"):
        open_to_read(tmp_path / "text.db")
    SqliteJournal(tmp_path / "newer.db").close()
    meddle(tmp_path / "newer.db", "PRAGMA user_version = 1000")
    for opens in (open_to_read, ReadOnlyJournal, SqliteJournal):
        with pytest.raises(JournalTooNew):
            opens(tmp_path / "newer.db")
    with failing_disk(0), pytest.raises(JournalTooNew):
        open_to_read(tmp_path / "newer.db")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no JSON",
        b"\xff",
        b"[1]",
        b"{}",
        b'{"process": 1, "machine": "m", "since": 1}',
        b'{"process": "x", "machine": "m", "since": 1, "resume": ""}',
        b'{"process": [], "machine": "m", "since": 1, "resume": ""}',
    ],
)
def test_a_file_that_is_no_lease_is_passed_over(tmp_path: Path, text: bytes, platform: Platform) -> None:
    folder = tmp_path / "presence"
    folder.mkdir()
    (folder / "other").write_bytes(text)
    lease = b'{"process": 1, "machine": "m", "since": 2, "resume": "go on"}'
    for name in ("dead", "beginning.new"):
        (folder / name).write_bytes(lease)
    leases = PresenceFolder(str(folder), platform)
    assert leases.all() == [("dead", False, 1, "m", 2, "go on")]
    for name in ("other", "dead", "dead", "none"):
        leases.forget(name)
    assert leases.all() == []
    assert {each.name for each in folder.iterdir()} == {"other", "beginning.new"}


def test_what_is_kept_beside_the_journal_is_read_as_bytes_or_not_at_all(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        for seq in (10, 20):
            journal.snapshots.keep("f/1", seq, b"data")
        meddle(tmp_path / "derived.db", "UPDATE snapshots SET data = 'text' WHERE seq = 20")
        assert journal.snapshots.newest("f/1") is None
        assert journal.snapshots.newest("f/1", as_of=19) == Snapshot(10, b"data")
        journal.blobs.keep([b"one", b"two"])
        one, two = (sha256(each) for each in (b"one", b"two"))
        meddle(tmp_path / "blobs.db", "UPDATE blobs SET data = x'00' WHERE sha256 = ?", one)
        meddle(tmp_path / "blobs.db", "UPDATE blobs SET data = 'two' WHERE sha256 = ?", two)
        assert [journal.blobs.find(each) for each in (one, two)] == [None, None]


def test_a_database_beside_the_journal_is_made_anew_where_it_is_damaged_and_not_where_it_cannot_be_opened(
    tmp_path: Path,
) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"blobs.db{suffix}").write_bytes(b"no database at all" * 1000)
        assert journal.blobs.find(sha256(b"one")) is None
        journal.blobs.keep([b"one"])
        assert journal.blobs.find(sha256(b"one")) == b"one"
        for name in ("derived.db", "blobs.db"):
            for path in tmp_path.glob(f"{name}*"):
                path.unlink()
            (tmp_path / name).mkdir()
        with pytest.raises(JournalError, match=r"derived\.db"):
            journal.snapshots.keep("f/1", 10, b"data")
        with pytest.raises(JournalError, match=r"blobs\.db"):
            journal.blobs.keep([b"one"])
        assert journal.snapshots.newest("f/1") is None
        assert journal.blobs.kept() == []


@pytest.mark.parametrize(
    ("sizes", "most", "gone"),
    [
        ([1, 1, 1], 3, []),
        ([1, 1, 1], 2, [0]),
        ([2, 1], 1, [0]),
        ([1, 2], 1, [0, 1]),
        ([1], 0, [0]),
    ],
)
def test_the_oldest_blobs_go_until_the_others_fit(
    tmp_path: Path, sizes: list[int], most: int, gone: list[int]
) -> None:
    """Sizes in parts of the least that a blob counts as; a smaller one counts as much."""
    blobs = [bytes([n]) * (size * MIN_COUNTED_BYTES) for n, size in enumerate(sizes)]
    database = BlobDatabase(str(tmp_path), most * MIN_COUNTED_BYTES)
    database.keep([blob[:1] if len(blob) == MIN_COUNTED_BYTES else blob for blob in blobs])
    assert len(database.kept(None)) == len(sizes) - len(gone)
    named = [(str(n), len(blob)) for n, blob in enumerate(blobs)]
    counted = sum(sizes) * MIN_COUNTED_BYTES
    assert [*excess_blobs(named, counted, most * MIN_COUNTED_BYTES)] == [str(n) for n in gone]


def test_without_another_bound_a_gigabyte_of_blobs_is_kept() -> None:
    for counted, gone in ((2**30, []), (2**30 + 1, ["oldest"])):
        assert [*excess_blobs([("oldest", 5000), ("newest", 5000)], counted)] == gone


def test_others_do_not_see_who_holds_what(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.presence.hold()
        with journal.exclusive("a"), journal.claim("a"):
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_dir()}
    assert modes == dict.fromkeys(("exclusive", "claims", "presence"), 0o700)


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has open is asked of Linux")
def test_nothing_of_a_closed_journal_is_left_open(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:
        journal.append([Write("ann", "t", "collab", "a", "x")])
        journal.presence.hold()
        assert [row.seq for row in journal.rows()] == [1]
        assert open_below(tmp_path)
    assert not open_below(tmp_path)


def open_below(folder: Path) -> list[str]:
    """What this process has open there."""
    links = (os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return [each for each in links if each.startswith(str(folder))]


def test_every_question_about_rows_is_answered_by_an_index(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with counted_on_sqlite() as count, closing(SqliteJournal(path)) as journal:
        journal.append([Write("ann", "t", "collab", "a", "x")])
        before = count.statements
        journal.row(1)
        journal.rows()
        journal.rows_before(9, only=RowFilter(actor="ann"))
        journal.head("collab", "a")
        list(journal.heads("collab"))
        journal.heads_of([("collab", "a")])
        journal.heads_with_content([("collab", "a")])
        journal.heads_and_notes([("collab", "a")], [("collab", "a", "ann", "t")])
        journal.version("collab", "a", 1)
        journal.history("collab", "a")
        journal.versions("collab", "a")
        journal.changed_paths(0, 9)
        journal.changed_paths(0, 9, zones=["collab"])
        journal.refused("collab", "a")
        journal.notes("collab", "a", "ann", "t")
        journal.last_notes([("collab", "a", "ann", "t")])
        journal.topic("steps:ann")
        journal.newest_of_topics("steps:")
        journal.rows_of_call("ann", "s1/1")
        journal.open_items("task")
        journal.settled("collab", "a")
        journal.content(1)
        journal.seq_at(0)
    asked = count.sent[before:]
    assert len(asked) > 20
    with closing(sqlite3.connect(path)) as connection:
        for sql, values in asked:
            plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            scans = [step for step in plan if "SCAN" in step and "json_each" not in step]
            # The newest row is at the end of the table.
            assert (
                not scans
                or "ORDER BY seq DESC LIMIT 1" in sql
                or sql.endswith("ifnull(max(seq),0) FROM rows")
            ), (
                sql,
                plan,
            )


def test_a_journal_is_opened_by_its_address(tmp_path: Path) -> None:
    open_journal(tmp_path / "journal.db").close()
    assert (tmp_path / "journal.db").exists()
    with pytest.raises(JournalError):
        open_journal("gopher://somewhere")


def open_databases(folder: Path) -> list[str]:
    return [each for each in open_below(folder) if each.endswith(".db")]


def test_a_thread_that_reads_on_while_the_journal_is_closed_is_answered(tmp_path: Path) -> None:
    with counted_on_sqlite() as count:
        journal = SqliteJournal(tmp_path / "journal.db")
        journal.append([Write("ann", "t", "collab", "a", "x")])
        journal.close()
        before = count.statements
        assert journal.last_seq() == 1
        # The journal opened another connection and made it read-only by a statement.
        assert count.statements == before + 2
        assert journal.last_seq() == 1
        assert count.statements == before + 4
        # Nobody closes the journal again.
        assert not open_databases(tmp_path)


def test_closing_amid_reads_leaves_no_connection_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    def read(journal: SqliteJournal, barrier: Barrier) -> None:
        barrier.wait()
        with suppress(JournalError):
            for _ in range(20):
                journal.rows(0)

    for _ in range(10):
        journal, barrier = SqliteJournal(path), Barrier(4)
        with ThreadPoolExecutor(3) as threads:
            reading = [threads.submit(read, journal, barrier) for _ in range(3)]
            barrier.wait()
            journal.close()
        assert [each.result() for each in reading] == [None] * 3
        assert not open_databases(tmp_path)
