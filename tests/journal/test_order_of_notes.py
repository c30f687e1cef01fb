"""Notes become rows a little later, and still come before what their thread commits after them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from calls import ok
from watchroom import Toolbox, Workspace
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Appended, Draft, Note


class SlowNotes(SqliteJournal):
    """A journal on a machine that is busy elsewhere as soon as notes alone are to become rows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_slow = False
        self.has_begun = Event()
        self.others = Event()

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        if self.is_slow and all(isinstance(each, Note) for each in drafts):
            self.has_begun.set()
            # Nobody else gets ahead meanwhile.
            assert not self.others.wait(0.5)
            return super().append(drafts, all_or_nothing=all_or_nothing)
        appended = super().append(drafts, all_or_nothing=all_or_nothing)
        if self.is_slow:
            self.others.set()
        return appended


def test_a_note_that_is_on_its_way_comes_before_the_next_commit(tmp_path: Path) -> None:
    (tmp_path / ".watchroom").mkdir()
    journal = SlowNotes(tmp_path / ".watchroom" / "journal.db")
    with Workspace.open(tmp_path, agents=["alice"], journal=journal) as workspace:
        alice = workspace.tools("alice")
        ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
        workspace.flush()
        seen = journal.last_seq()
        journal.is_slow = True
        ok(alice, "collab_read", filepath="plan.md")
        assert journal.has_begun.wait(30)
        ok(alice, "save_to_my_workspace", filename="a.md", content="x\n")
        journal.is_slow = False
        assert [row.tool for row in journal.rows(seen)] == ["collab_read", "save_to_my_workspace"]


def test_a_note_comes_before_rows_that_are_committed_together(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    workspace.flush()
    for _ in range(20):
        seen = workspace.journal.last_seq()
        ok(alice, "collab_read", filepath="plan.md")
        (Path(workspace.root) / "collaborative" / "current" / "plan.md").write_text(f"{seen}\n")
        workspace.scan()
        rows = workspace.journal.rows(seen)
        assert [row.tool for row in rows] == ["collab_read", "outside_edit"]
