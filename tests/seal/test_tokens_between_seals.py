"""Tokens have no leaf. A seal made right after one still agrees with the rows, and tampering is still found."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from calls import ok
from memory_journal import MemoryJournal
from watchroom import Workspace
from watchroom.history.seal import Anchors, read_seals, verify_seals
from watchroom.kernel.journal import Journal, SqliteJournal
from watchroom.kernel.rules.row_leaf import has_leaf
from watchroom.model import Draft, Write
from watchroom_cli.main import main

from seal.sealed import notes, seal, tamper

FIXTURE = Path(__file__).parents[1] / "fixtures/workspace-0.2.0-token-between-checkpoints.tar.gz"


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


def token(name: str) -> Draft:
    return Write("human:dana", "make_token", "token", f"alice/{name}", "{}", expected=0)


def test_a_token_before_a_seal_raises_no_alarm(journal: Journal, anchors: Anchors) -> None:
    journal.append(notes(3))
    seal(journal, anchors)
    journal.append([*notes(2), token("1"), token("2")])
    seal(journal, anchors)
    journal.append([token("3")])
    report = verify_seals(journal, anchors.read)
    assert report.findings == ()
    assert report.newest is not None
    assert report.since == 0


def test_a_seal_names_the_last_row_that_has_a_leaf(journal: Journal, anchors: Anchors) -> None:
    journal.append([*notes(3), token("1")])
    sealed = seal(journal, anchors)
    assert sealed is not None
    (recorded,) = read_seals(journal)
    assert recorded.signed is not None
    before = [row.seq for row in journal.rows(until=sealed.seq - 1) if has_leaf(row)]
    assert recorded.signed.seal.seq == before[-1]
    # The next process goes on from the tree that was kept, and from the seal that is kept elsewhere.
    journal.append([token("2"), *notes(1), token("3")])
    assert seal(journal, anchors) is not None
    assert verify_seals(journal, anchors.read).findings == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET path='other.md' WHERE seq=2",
        "DELETE FROM rows WHERE seq=2",
        "UPDATE rows SET seq=1000 WHERE seq=2",
        "UPDATE rows SET zone='token' WHERE seq=3",
    ],
    ids=["changed", "deleted", "renumbered", "made a token"],
)
def test_a_changed_row_is_found_beside_a_token(tmp_path: Path, anchors: Anchors, statement: str) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append([*notes(3), token("1")])
        seal(journal, anchors)
        journal.append(notes(1))
    tamper(path, statement)
    with closing(SqliteJournal(path)) as journal:
        assert [each.kind for each in verify_seals(journal).findings] == ["changed"]


def test_a_seal_that_names_a_row_of_the_next_leaf_is_a_change(tmp_path: Path, anchors: Anchors) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append([*notes(3), token("1")])
        sealed = seal(journal, anchors)
    assert sealed is not None
    (recorded,) = _recorded(path)
    named = f"seq {recorded}"
    tamper(
        path, f"UPDATE rows SET detail=replace(detail, '{named}', 'seq {sealed.seq}') WHERE seq={sealed.seq}"
    )
    with closing(SqliteJournal(path)) as journal:
        assert [each.kind for each in verify_seals(journal).findings] == ["changed"]


def _recorded(path: Path) -> list[int]:
    with closing(SqliteJournal(path)) as journal:
        found = read_seals(journal)
        return [each.signed.seal.seq for each in found if each.signed is not None]


def test_a_journal_that_was_sealed_with_the_false_alarm_verifies_clean_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "team"
    root.mkdir()
    subprocess.run(["tar", "-xf", FIXTURE, "-C", root], check=True)
    assert main(["verify", str(root)]) == 0, capsys.readouterr()
    with Workspace.open(root) as workspace:
        ok(workspace.tools("alice"), "collab_write", filepath="a.md", content="four\n", message="m")
        assert seal(workspace.journal, Anchors(str(tmp_path / "state"), "team")) is not None
        assert workspace.sealing.verify().findings == ()
        sealed = read_seals(workspace.journal)
    assert len(sealed) == 3
