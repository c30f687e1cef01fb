"""Files that lag behind the journal, because their writer died or the disk refused, are never taken for edits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok
from evidence import outside_rows
from watchroom import Toolbox, Workspace
from watchroom.model import Write

CONTENTS = {"private": "agents/alice/notes.md", "collab": "collaborative/current/plan.md"}


@pytest.fixture
def dead_writer(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    """Another process committed new versions, and died before it laid them out: its rows are all there is of it."""
    ok(alice, "save_to_my_workspace", filename="notes.md", content="old")
    ok(alice, "collab_write", filepath="plan.md", content="old", message="m")
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="old", message="m")
    workspace.journal.append(
        [
            Write("alice", "save_to_my_workspace", "private", "alice/notes.md", "new"),
            Write("alice", "save_to_my_workspace", "private", "alice/more.md", "new"),
            Write("alice", "collab_write", "collab", "plan.md", "new"),
            Write("alice", "handoff_file", "handoff", "alice_to_bob/data.csv", "new"),
        ]
    )
    assert (root / "agents/alice/notes.md").read_text() == "old"


def _reads(root: Path, workspace: Workspace) -> None:
    bob = workspace.tools("bob")
    for filename in ("notes.md", "more.md"):
        assert ok(bob, "read_from_workspace", agent_id="alice", filename=filename)["content"] == "new"


def _lists(root: Path, workspace: Workspace) -> None:
    ok(workspace.tools("bob"), "list_workspace_files", agent_id="alice")


def _scans(root: Path, workspace: Workspace) -> None:
    assert workspace.scan() == []


def _repairs(root: Path, workspace: Workspace) -> None:
    assert workspace.repair() == []


def _writes_and_scans(root: Path, workspace: Workspace) -> None:
    ok(workspace.tools("bob"), "save_to_my_workspace", filename="x", content="x")
    assert workspace.scan() == []


def _deletes(root: Path, workspace: Workspace) -> None:
    ok(workspace.tools("alice"), "delete_from_my_workspace", filename="more.md")
    assert not (root / "agents/alice/more.md").exists()


def _reopens(root: Path, workspace: Workspace) -> None:
    Workspace.open(root).close()
    for file in CONTENTS.values():
        assert (root / file).read_text() == "new"


def _reopens_without_scanning(root: Path, workspace: Workspace) -> None:
    with Workspace.open(root, scan=False) as other:
        _reads(root, other)


@pytest.mark.usefixtures("dead_writer")
@pytest.mark.parametrize(
    "survivor",
    [
        _reads,
        _lists,
        _scans,
        _repairs,
        _writes_and_scans,
        _deletes,
        _reopens,
        _reopens_without_scanning,
    ],
)
def test_what_a_dead_writer_committed_holds_for_those_who_live(
    root: Path, workspace: Workspace, survivor: Callable[[Path, Workspace], None]
) -> None:
    survivor(root, workspace)
    assert outside_rows(workspace) == []
    head = workspace.journal.head("private", "alice/notes.md")
    assert head is not None
    assert (head.version, workspace.journal.content(head.seq)) == (2, "new")
    Workspace.open(root).close()
    assert (root / "agents/alice/notes.md").read_text() == "new"
    assert workspace.verify() == []
    assert outside_rows(workspace) == []


@pytest.mark.usefixtures("dead_writer")
def test_an_edit_over_what_a_dead_writer_left_is_kept(root: Path, workspace: Workspace) -> None:
    for file in CONTENTS.values():
        (root / file).write_text("by hand")
    with Workspace.open(root) as other:
        kept = {other.journal.content(row.seq) for row in outside_rows(other)}
        assert kept == {"by hand"}
        other.repair()
        assert other.verify() == []


@pytest.mark.parametrize("reopened", [False, True])
def test_a_version_that_the_disk_refused_is_laid_out_later(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, reopened: bool
) -> None:
    """Something in the place of its scratch folder keeps files from being written, as a full disk does."""
    ok(alice, "save_to_my_workspace", filename="notes.md", content="old")
    ok(alice, "collab_write", filepath="plan.md", content="old", message="m")
    scratch = root / ".watchroom/tmp"
    shutil.rmtree(scratch)
    scratch.touch()
    ok(alice, "save_to_my_workspace", filename="notes.md", content="new")
    ok(alice, "save_to_my_workspace", filename="more.md", content="new")
    ok(alice, "collab_write", filepath="plan.md", content="new", message="m")
    assert (root / "agents/alice/notes.md").read_text() == "old"
    if not reopened:
        assert workspace.scan() == []
        ok(bob, "list_workspace_files", agent_id="alice")
    scratch.unlink()
    with Workspace.open(root) as other:
        assert outside_rows(other) == []
        for filename in ("notes.md", "more.md"):
            read = ok(other.tools("bob"), "read_from_workspace", agent_id="alice", filename=filename)
            assert read["content"] == "new"
        assert outside_rows(other) == []
        assert other.verify() == []
