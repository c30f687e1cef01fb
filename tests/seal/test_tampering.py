"""Whoever owns the journal's file changes it with SQL: each change before the newest seal is found, and told
for what it is."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from watchroom.history.seal import Anchor, Anchors, Finding, SealReport, read_seals, verify_seals
from watchroom.kernel.journal import SqliteJournal

from seal.sealed import notes, seal, tamper

FIRST, SECOND = 21, 42
"""The last rows that the two seals of `team` cover, each the row before it: the id is row 21."""


@pytest.fixture
def anchors(tmp_path: Path) -> Anchors:
    (tmp_path / "published").mkdir()
    return Anchors(str(tmp_path / "state"), str(tmp_path), str(tmp_path / "published"))


@pytest.fixture
def team(tmp_path: Path, anchors: Anchors) -> Path:
    """A journal of 46 rows with two seals, and three rows that came later."""
    path = tmp_path / "journal.db"
    with closing(SqliteJournal(path)) as journal:
        journal.append(notes(20))
        seal(journal, anchors)
        journal.append(notes(20))
        seal(journal, anchors)
        journal.append(notes(3))
    return path


def checked(path: Path, anchors: Anchors | None = None) -> SealReport:
    with closing(SqliteJournal(path)) as journal:
        return verify_seals(journal, anchors.read if anchors else lambda _: ())


def found(path: Path, anchors: Anchors | None = None) -> list[tuple[str, int, int]]:
    return [(each.kind, each.after, each.until) for each in checked(path, anchors).findings]


def test_what_nobody_touched_is_sealed_up_to_its_newest_seal(team: Path, anchors: Anchors) -> None:
    report = checked(team, anchors)
    assert report.findings == ()
    assert report.newest is not None
    assert (report.newest.seal.seq, report.rows, report.since) == (SECOND, 46, 3)
    assert [each.kind for each in report.anchors] == ["place", "state", "published"]


@pytest.mark.parametrize(
    ("statement", "after", "until"),
    [
        ("UPDATE rows SET path='other.md' WHERE seq=30", FIRST, SECOND + 1),
        ("UPDATE rows SET time=time-1 WHERE seq=30", FIRST, SECOND + 1),
        ("UPDATE rows SET actor='bob' WHERE seq=5", 0, FIRST + 1),
        ("DELETE FROM rows WHERE seq=5", 0, FIRST + 1),
        ("DELETE FROM rows WHERE seq=30", FIRST, SECOND + 1),
    ],
    ids=["edited", "moved in time", "in another's name", "deleted early", "deleted late"],
)
def test_a_changed_row_is_found_between_two_seals(team: Path, statement: str, after: int, until: int) -> None:
    assert found(team) == []
    tamper(team, statement)
    assert found(team) == [("changed", after, until)]


def test_a_row_that_is_put_in_is_found(team: Path) -> None:
    tamper(
        team,
        "UPDATE rows SET seq=seq+1000 WHERE seq>=30",
        "INSERT INTO rows SELECT 30,time,actor,tool,zone,'forged',version,base,outcome,error,message,sha256,size,"
        "detail,content FROM rows WHERE seq=29",
    )
    assert [kind for kind, *_ in found(team)] == ["changed"]


def test_what_came_after_the_newest_seal_is_not_covered(team: Path) -> None:
    tamper(team, "UPDATE rows SET path='other.md' WHERE seq=46")
    assert found(team) == []


def test_a_cut_tail_is_found_by_what_is_kept_elsewhere(team: Path, anchors: Anchors) -> None:
    tamper(team, "DELETE FROM rows WHERE seq>30")
    # The journal alone is in order up to its first seal.
    assert found(team) == []
    report = checked(team, anchors)
    assert {(each.kind, each.rows, each.sealed) for each in report.findings} == {("truncated", 30, 42)}


def test_a_tail_that_was_cut_and_written_anew_is_another_journal(team: Path, anchors: Anchors) -> None:
    tamper(team, "DELETE FROM rows WHERE seq>30")
    with closing(SqliteJournal(team)) as journal:
        journal.append(notes(40, "forged"))
    assert {kind for kind, *_ in found(team, anchors)} == {"forked"}


def test_a_journal_that_was_sealed_anew_by_its_forger_is_found_by_what_was_published(
    team: Path, anchors: Anchors, tmp_path: Path
) -> None:
    tamper(
        team,
        "UPDATE rows SET path='other.md' WHERE seq=30",
        "DELETE FROM rows WHERE seq>=43",
    )
    # Else the tree would go on from what was kept of the rows as they were.
    (team.parent / "derived.db").unlink()
    with closing(SqliteJournal(team)) as journal:
        journal.append(notes(10))
        assert seal(journal, Anchors(str(tmp_path / "forger"), "elsewhere"))
    assert found(team) == []
    assert {kind for kind, *_ in found(team, anchors)} == {"forked"}


def test_an_old_copy_that_was_restored_is_found_and_gets_no_seal(
    team: Path, anchors: Anchors, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with closing(SqliteJournal(team)) as journal:
        journal.append(notes(1))
    shutil.copy(team, copy)
    with closing(SqliteJournal(team)) as journal:
        journal.append(notes(10))
        seal(journal, anchors)
    (published,) = (tmp_path / "published").iterdir()
    kept = published.read_text()
    assert {kind for kind, *_ in found(copy, anchors)} == {"truncated"}
    with closing(SqliteJournal(copy)) as journal:
        journal.append(notes(30, "later"))
        assert {kind for kind, *_ in found(copy, anchors)} == {"forked"}
        # The evidence stays, and nobody takes the copy for the original.
        assert seal(journal, anchors) is None
        journal.append(notes(1))
        assert seal(journal, anchors) is None
    assert published.read_text() == kept


def test_another_workspace_in_the_place_of_a_sealed_one_is_told(team: Path, anchors: Anchors) -> None:
    for each in team.parent.glob("journal.*"):
        each.unlink()
    with closing(SqliteJournal(team)) as journal:
        journal.append(notes(50))
        seal(journal, anchors)
    kinds = [(each.kind, each.anchor.kind if each.anchor else "") for each in checked(team, anchors).findings]
    assert kinds == [("replaced", "place")]


@pytest.mark.parametrize("detail", ["{}", '{"checkpoint":"watchroom/x"}', "not json", '{"checkpoint":7}'])
def test_a_seal_that_was_spoilt_is_a_change(team: Path, detail: str) -> None:
    tamper(team, f"UPDATE rows SET detail='{detail}' WHERE tool='journal_checkpoint' AND seq<30")
    assert [kind for kind, *_ in found(team)] == ["changed"]


def test_a_seal_of_another_workspace_does_not_count_as_one_of_this(team: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    mine = Anchors(str(tmp_path / "mine"), "other")
    with closing(SqliteJournal(other)) as journal:
        journal.append(notes(3))
        seal(journal, mine)
        (newest,) = read_seals(journal)
    assert newest.signed is not None
    given = Anchor("given", "file", newest.signed)
    with closing(SqliteJournal(team)) as journal:
        report = verify_seals(journal, lambda _: [given])
    assert report.findings == (Finding("replaced", sealed=4, anchor=given),)
