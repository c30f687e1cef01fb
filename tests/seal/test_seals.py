"""When seals are written, what they rest on, and who sees them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from memory_journal import MemoryJournal
from watchroom import Workspace
from watchroom.algorithms.merkle import root_of
from watchroom.algorithms.sshsig import parse_signing_key, verify
from watchroom.features.overview.snapshots import read_model
from watchroom.history.seal import Anchors, read_seals, verify_seals
from watchroom.history.seal.writer import CLAIM, MAX_UNSEALED_ROWS
from watchroom.kernel.journal import Journal, RowFilter, SqliteJournal
from watchroom.kernel.rules.row_leaf import has_leaf, hash_row
from watchroom.kernel.rules.seal_note import NAMESPACE, Seal

from seal.sealed import notes, seal, writer_of

NEVER = Event()


@pytest.fixture
def anchors(tmp_path: Path) -> Anchors:
    return Anchors(str(tmp_path / "state"), "place")


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    made: Journal = (
        MemoryJournal(gap=3) if request.param == "memory" else SqliteJournal(tmp_path / "journal.db")
    )
    with closing(made):
        yield made


def newest(journal: Journal) -> Seal:
    (recorded,) = read_seals(journal, limit=1)
    assert recorded.signed is not None
    return recorded.signed.seal


def defined_root(journal: Journal, until: int) -> bytes:
    rows = journal.rows(until=until, limit=100_000)
    return root_of([hash_row(row) for row in rows if has_leaf(row)])


def test_a_seal_is_written_after_so_many_rows_and_goes_on_from_the_one_before(
    journal: Journal, anchors: Anchors
) -> None:
    writer = writer_of(journal, anchors)
    assert writer.write_due(NEVER) is None
    journal.append(notes(MAX_UNSEALED_ROWS - 1))
    assert writer.write_due(NEVER) is None
    journal.append(notes(1))
    assert writer.write_due(NEVER) is not None
    # The id is a row of its own, before the first seal.
    assert newest(journal).size == MAX_UNSEALED_ROWS + 1
    assert newest(journal).root == defined_root(journal, newest(journal).seq)
    # Another process goes on from what was kept.
    journal.append(notes(7))
    assert seal(journal, anchors) is not None
    assert newest(journal).root == defined_root(journal, newest(journal).seq)
    assert verify_seals(journal, anchors.read).findings == ()


def test_a_workspace_at_rest_gets_no_seal_and_a_seal_causes_no_other(
    journal: Journal, anchors: Anchors
) -> None:
    writer = writer_of(journal, anchors)
    assert writer.write_due(NEVER, at_once=True) is None
    journal.append(notes(1))
    row = writer.write_due(NEVER, at_once=True)
    assert row is not None
    for _ in range(3):
        assert writer.write_due(NEVER, at_once=True) is None
        assert seal(journal, anchors) is None
    assert journal.last_seq() == row.seq


def test_one_writes_them_at_a_time(journal: Journal, anchors: Anchors) -> None:
    journal.append(notes(1))
    with journal.claim(CLAIM) as is_claimed:
        assert is_claimed
        assert seal(journal, anchors) is None
    assert seal(journal, anchors) is not None


def test_a_call_that_is_soon_over_writes_none(journal: Journal, anchors: Anchors) -> None:
    journal.append(notes(1))
    assert writer_of(journal, anchors).write_last() is None
    assert read_seals(journal) == []


def test_what_was_kept_of_the_tree_may_be_deleted(tmp_path: Path, anchors: Anchors) -> None:
    path = tmp_path / "journal.db"
    for _ in range(2):
        with closing(SqliteJournal(path)) as journal:
            journal.append(notes(5))
            assert seal(journal, anchors) is not None
            assert newest(journal).root == defined_root(journal, newest(journal).seq)
        os.unlink(tmp_path / "derived.db")
    shutil.rmtree(tmp_path / "state")
    with closing(SqliteJournal(path)) as journal:
        journal.append(notes(5))
        assert seal(journal, anchors) is not None
        assert verify_seals(journal, anchors.read).findings == ()


def test_a_workspace_writes_signed_seals_that_no_list_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.workspace._SEAL_SECONDS", 0.01)
    monkeypatch.setattr("watchroom.history.seal.writer.MAX_UNSEALED_SECONDS", 0)
    with Workspace.open(tmp_path, agents=["alice"]) as workspace:
        changes = workspace.journal.changes(after=0)
        while not read_seals(workspace.journal, limit=1):
            changes.wait(0.1)
        changes.close()
        report = workspace.sealing.verify()
        journal = workspace.journal
        listed = journal.rows_before(journal.last_seq() + 1, only=RowFilter(steps=False))
        recent = read_model(journal, journal.last_seq()).recent
    assert report.newest is not None
    assert report.findings == ()
    key = parse_signing_key(report.newest.signature)
    verify(report.newest.signature, report.newest.body.encode(), NAMESPACE, key)
    assert report.signer == key.fingerprint
    for rows in (listed, list(recent)):
        assert {row.tool for row in rows} == {"register"}


def test_a_fork_is_another_workspace(tmp_path: Path, anchors: Anchors) -> None:
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        journal = workspace.journal
        assert seal(journal, anchors) is not None
        Workspace.fork(journal, journal.last_seq(), tmp_path / "fork")
    with Workspace.open(tmp_path / "fork") as fork:
        assert read_seals(fork.journal) == []
        assert seal(fork.journal, Anchors(str(tmp_path / "state"), "fork")) is not None
        assert fork.sealing.verify().findings == ()
