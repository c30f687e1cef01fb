"""A journal moves into a database and back: the same rows and contents, whatever interrupts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from evidence import all_rows
from journal.sample import OF_EVERY_KIND, OPEN, TOPICS
from watchroom import Workspace
from watchroom.errors import JournalError, JournalInUse, MoveDiffers
from watchroom.kernel.checkout.location import find_journal, move_journal
from watchroom.kernel.journal import Journal, SqliteJournal, open_journal
from watchroom.kernel.journal.moving import copy_rows, open_move_side
from watchroom.kernel.journal.sqlite import INLINE_BYTES
from watchroom.model import Note, Write

pytestmark = pytest.mark.postgres
LARGE = "文" * INLINE_BYTES


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The folder of a workspace with rows of every kind, and a large text twice."""
    root = tmp_path / "team"
    with Workspace.open(root, ["alice", "bob"]) as workspace:
        workspace.journal.append(OF_EVERY_KIND)
        for name in ("one.md", "two.md"):
            workspace.tools("alice").dispatch_tool_call(
                "collab_write", {"filepath": name, "content": LARGE, "message": "m"}
            )
    return root


def everything(journal: Journal) -> list[object]:
    rows = all_rows(journal)
    return [
        *((row, journal.content(row.seq)) for row in rows),
        {name: journal.topic(name) for name in TOPICS},
        {place: journal.open_items(*place) for place in OPEN},
        [*journal.heads("collab")],
        journal.rows_of_call("alice", "s1/1/0"),
        journal.seq_at(rows[len(rows) // 2].time),
    ]


def test_a_workspace_moves_to_a_server_and_back(filled: Path, url: str) -> None:
    with closing(SqliteJournal(filled / ".watchroom/journal.db")) as journal:
        before = everything(journal)
    steps: list[tuple[int, int]] = []
    there = move_journal(filled, url, lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1]
    assert find_journal(filled) == url
    with closing(open_journal(url)) as journal:
        assert everything(journal) == before
        assert journal.problems() == []
    with Workspace.open(filled, create=False) as workspace:
        written = workspace.tools("bob").dispatch_tool_call(
            "collab_write", {"filepath": "one.md", "content": "x", "message": "m", "expected_version": 1}
        )
        assert written["success"]
        after = everything(workspace.journal)
    command = [sys.executable, "-m", "watchroom_cli.main", "move", str(filled), "file", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] > there.rows
    with Workspace.open(filled, create=False) as workspace:
        assert isinstance(workspace.journal, SqliteJournal)
        assert everything(workspace.journal) == after
        assert workspace.journal.problems() == []
    with closing(open_journal(url)) as left, pytest.raises(JournalError, match="moved"):
        left.append([Note("alice", "t", "collab", "a")])


def test_a_move_that_was_interrupted_goes_on(filled: Path, url: str) -> None:
    with (
        closing(open_move_side(str(filled / ".watchroom/journal.db"))) as source,
        closing(open_move_side(url)) as into,
    ):
        into.write(source.read(0, 7))
        assert into.last_seq() == 7
        # All there, but its folder was not told.
        moved = copy_rows(source, into)
        source.retire()
    assert move_journal(filled, url) == moved


def test_a_target_with_other_rows_is_refused_and_nothing_changes(filled: Path, url: str) -> None:
    with closing(open_journal(url)) as journal:
        journal.append([Write("mallory", "t", "collab", "a.md", "other")])
    with pytest.raises(MoveDiffers):
        move_journal(filled, url)
    with Workspace.open(filled, create=False) as workspace:
        assert isinstance(workspace.journal, SqliteJournal)
        workspace.journal.append([Note("alice", "t", "collab", "a")])


def test_nobody_goes_on_with_the_old_file(filled: Path, url: str) -> None:
    with closing(SqliteJournal(filled / ".watchroom/journal.db")) as open_before:
        lease = open_before.presence.hold("go on")
        with pytest.raises(JournalInUse):
            move_journal(filled, url)
        assert lease
    with closing(SqliteJournal(filled / ".watchroom/journal.db")) as open_before:
        move_journal(filled, url)
        with pytest.raises(JournalError, match="moved"):
            open_before.append([Note("alice", "t", "collab", "a")])
