"""Rows move from one file into another: what `copy_rows` promises, whatever the backends are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from evidence import all_rows
from journal.disk import meddle
from journal.sample import OF_EVERY_KIND
from watchroom.errors import ExtraMissing, JournalError, JournalInUse, MoveDiffers
from watchroom.kernel.journal import SqliteJournal, open_journal
from watchroom.kernel.journal.moving import copy_blobs, copy_rows, open_move_side
from watchroom.kernel.journal.opening import database_name, is_server_address
from watchroom.kernel.journal.sqlite.moving import SqliteMove
from watchroom.kernel.journal.sqlite.writer import INLINE_BYTES
from watchroom.model import Note, Row, Write
from watchroom.platform import detect_platform
from watchroom.platform.process_lock import ProcessLock

LARGE = "文" * INLINE_BYTES
Steps = list[tuple[int, int]]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteMove]:
    """1,003 rows: of every kind, a large text twice, and notes."""
    with closing(SqliteMove(str(tmp_path / "source.db"))) as side:
        large = [Write("alice", "t", "collab", name, LARGE) for name in ("one.md", "two.md")]
        some = len(OF_EVERY_KIND) + len(large)
        notes = [Note("alice", "t", "collab", "a", content=f"{n}") for n in range(1003 - some)]
        side.journal.append([*OF_EVERY_KIND, *large, *notes])
        yield side


@pytest.fixture
def target(tmp_path: Path) -> Iterator[SqliteMove]:
    (tmp_path / "there").mkdir()
    with closing(SqliteMove(str(tmp_path / "there/target.db"))) as side:
        yield side


def rows_and_contents(side: SqliteMove) -> list[tuple[Row, str | None]]:
    return [(row, side.journal.content(row.seq)) for row in all_rows(side.journal)]


def test_all_rows_are_copied_and_compared_in_batches_of_500(source: SqliteMove, target: SqliteMove) -> None:
    steps: Steps = []
    moved = copy_rows(source, target, lambda done, total: steps.append((done, total)))
    assert moved.rows == 1003
    assert rows_and_contents(target) == rows_and_contents(source)
    assert target.journal.problems() == []
    assert steps == [(each, 2006) for each in (500, 1000, 1003, 1503, 2003, 2006)]
    assert source.read(1, 2) == rows_and_contents(source)[1:3]
    # Once more: there is nothing to copy.
    steps.clear()
    assert copy_rows(source, target, lambda done, total: steps.append((done, total))) == moved
    assert steps == [(each, 2006) for each in (500, 1000, 1003, 1503, 2003, 2006)]


def test_an_empty_journal_moves_too(tmp_path: Path, target: SqliteMove) -> None:
    steps: Steps = []
    with closing(SqliteMove(str(tmp_path / "empty.db"))) as empty:
        moved = copy_rows(empty, target, lambda done, total: steps.append((done, total)))
    assert (moved.rows, steps) == (0, [(0, 0)])


def test_a_move_goes_on_behind_what_is_there_and_says_the_same_in_the_end(
    source: SqliteMove, target: SqliteMove, tmp_path: Path
) -> None:
    target.write(source.read(0, 700))
    steps: Steps = []
    moved = copy_rows(source, target, lambda done, total: steps.append((done, total)))
    assert [done for done, _ in steps] == [500, 700, 1003, 1503, 2003, 2006]
    with closing(SqliteMove(str(tmp_path / "another.db"))) as another:
        assert copy_rows(source, another) == moved
        meddle(tmp_path / "source.db", "UPDATE rows SET message = 'other' WHERE seq = 1003")
        meddle(tmp_path / "another.db", "UPDATE rows SET message = 'other' WHERE seq = 1003")
        assert copy_rows(source, another).digest != moved.digest


@pytest.mark.parametrize("seq", [1, 500, 501, 700])
@pytest.mark.parametrize("column", ["message", "content"])
def test_a_target_with_another_row_or_content_is_refused_and_gets_none(
    source: SqliteMove, target: SqliteMove, tmp_path: Path, column: str, seq: int
) -> None:
    target.write(source.read(0, 700))
    meddle(tmp_path / "there/target.db", f"UPDATE rows SET {column} = 'other' WHERE seq = ?", seq)
    with pytest.raises(MoveDiffers) as refused:
        copy_rows(source, target)
    assert refused.value.values == {"seq": seq}
    assert target.last_seq() == 700


def test_a_target_that_has_later_rows_too_has_all_that_is_to_be_moved(
    source: SqliteMove, target: SqliteMove
) -> None:
    """As where the folder was not told of a move, and others went on in the target."""
    moved = copy_rows(source, target)
    target.journal.append([Note("bob", "t", "collab", "a")])
    assert copy_rows(source, target) == moved


def test_a_target_that_did_not_keep_what_was_written_is_found_out(source: SqliteMove, tmp_path: Path) -> None:
    class Forgetful(SqliteMove):
        def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
            super().write(rows[:400])

    with (
        closing(Forgetful(str(tmp_path / "forgetful.db"))) as target,
        pytest.raises(MoveDiffers) as refused,
    ):
        copy_rows(source, target)
    # The first row that is another one: 501 stands where 401 should.
    assert refused.value.values == {"seq": 401}


def test_a_target_that_lacks_the_last_rows_is_found_out(source: SqliteMove, tmp_path: Path) -> None:
    class Full(SqliteMove):
        def write(self, rows: Sequence[tuple[Row, str | None]]) -> None:
            super().write(rows[:-1] if rows[-1][0].seq == 1003 else rows)

    with closing(Full(str(tmp_path / "full.db"))) as target, pytest.raises(MoveDiffers) as refused:
        copy_rows(source, target)
    assert refused.value.values == {"seq": 1003}


def test_rows_are_written_all_or_none(source: SqliteMove, target: SqliteMove) -> None:
    target.write(source.read(0, 1))
    with pytest.raises(JournalError):
        target.write(source.read(1, 1) + source.read(0, 1))
    assert target.last_seq() == 1
    target.write(source.read(1, 1))
    assert target.last_seq() == 2


def test_blobs_are_kept_there_too_and_those_that_are_there_stay_as_they_are(
    source: SqliteMove, target: SqliteMove
) -> None:
    source.journal.blobs.keep([b"one", b"two", b"three"])
    target.journal.blobs.keep([b"two", b"four"])
    copy_blobs(source.journal, target.journal)
    names = source.journal.blobs.kept()
    assert [target.journal.blobs.find(name) for name in names] == [b"one", b"two", b"three"]
    two_and_four = target.journal.blobs.kept()[:2]
    assert [target.journal.blobs.find(name) for name in two_and_four] == [b"two", b"four"]


def test_nobody_appends_to_a_frozen_side_and_a_process_that_runs_something_keeps_it_from_freezing(
    source: SqliteMove, tmp_path: Path
) -> None:
    with closing(ProcessLock(str(tmp_path / "source.lock"), detect_platform())) as lock:
        with source.frozen():
            assert not lock.try_acquire()
        with pytest.raises(RuntimeError, match="left"), source.frozen():
            raise RuntimeError("left")
        assert lock.try_acquire()
        lock.release()
    with closing(SqliteJournal(tmp_path / "source.db")) as running:
        running.presence.hold("go on")
        with pytest.raises(JournalInUse), source.frozen():
            pass
    (tmp_path / "presence" / "dead").write_text('{"process": 1, "machine": "", "since": 1, "resume": ""}')
    with source.frozen():
        pass


def test_a_side_that_is_retired_refuses_appends_of_all_that_have_it_open(
    source: SqliteMove, tmp_path: Path
) -> None:
    with closing(SqliteJournal(tmp_path / "source.db")) as open_before:
        source.retire()
        source.retire()
        for journal in (open_before, source.journal):
            with pytest.raises(JournalError, match="moved"):
                journal.append([Note("alice", "t", "collab", "a")])


def test_a_side_is_opened_by_its_address(tmp_path: Path) -> None:
    with closing(open_move_side(str(tmp_path / "journal.db"))) as side:
        assert isinstance(side, SqliteMove)
        assert side.last_seq() == 0


@pytest.mark.parametrize("opens", [open_journal, open_move_side])
def test_without_the_extra_for_servers_it_is_named(
    opens: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("psycopg", "watchroom.kernel.journal.postgres", "watchroom.kernel.journal.postgres.moving"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExtraMissing, match="psycopg"):
        opens("postgresql://host/name")


@pytest.mark.parametrize(
    ("address", "is_server", "name"),
    [
        ("postgresql://ann:secret@host:5432/team", True, "team@host"),
        ("postgres://host/team", True, "team@host"),
        ("postgresql:///team?host=/run/postgres&port=5", True, "team@/run/postgres"),
        ("postgresql:///team", True, "team"),
        ("postgresql://host", True, "postgres@host"),
        ("mysql://host/team", False, "team@host"),
        ("postgresql", False, "postgresql"),
        ("postgresql:/host/team", False, "host/team"),
        ("/srv/postgres://team", False, "srv/postgres://team"),
    ],
)
def test_an_address_of_a_server_is_told_from_a_path_and_shown_without_its_secrets(
    address: str, is_server: bool, name: str
) -> None:
    assert is_server_address(address) is is_server
    assert database_name(address) == name
