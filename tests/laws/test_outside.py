"""What is done to the files behind the journal's back is noticed by its content, kept as a row, and never followed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from calls import ok, refused
from evidence import outside_rows
from watchroom import Toolbox, Workspace

# Private files


def test_an_edit_of_a_private_file_becomes_its_next_version(workspace: Workspace, notes: Path) -> None:
    notes.write_text("by hand")
    (row,) = workspace.scan()
    assert (row.actor, row.kind, row.version, row.base, row.outcome) == ("outside", "outside", 2, 1, "ok")
    assert workspace.journal.content(row.seq) == "by hand"
    assert notes.read_text() == "by hand"
    assert workspace.scan() == []
    assert workspace.verify() == []


def test_a_private_edit_is_noticed_by_whoever_reads_it(
    workspace: Workspace, bob: Toolbox, notes: Path
) -> None:
    notes.write_text("by hand")
    assert ok(bob, "read_from_workspace", agent_id="alice", filename="notes.md")["content"] == "by hand"
    assert [row.version for row in outside_rows(workspace)] == [2]


def test_a_new_private_file_is_taken_in_and_can_be_read(
    workspace: Workspace, root: Path, bob: Toolbox
) -> None:
    (root / "agents/alice/deep").mkdir()
    (root / "agents/alice/deep/new.md").write_text("by hand")
    assert ok(bob, "list_workspace_files", agent_id="alice")["files"] == ["deep/new.md"]
    assert ok(bob, "read_from_workspace", agent_id="alice", filename="deep/new.md")["content"] == "by hand"
    assert workspace.verify() == []


def test_a_private_file_removed_by_hand_is_a_deletion(
    workspace: Workspace, bob: Toolbox, notes: Path
) -> None:
    notes.unlink()
    (row,) = workspace.scan()
    assert (row.version, row.deleted) == (2, True)
    error = refused(bob, "read_from_workspace", agent_id="alice", filename="notes.md")["error"]
    assert error == "file_not_found"
    assert workspace.scan() == []
    assert workspace.verify() == []


def test_a_private_edit_that_was_saved_over_unseen_is_kept(
    workspace: Workspace, alice: Toolbox, notes: Path
) -> None:
    notes.write_text("by hand")
    assert ok(alice, "save_to_my_workspace", filename="notes.md", content="second")["version"] == 2
    (row,) = outside_rows(workspace)
    assert (row.tool, row.outcome, row.base) == ("overwritten_edit", "conflict", 1)
    assert workspace.journal.content(row.seq) == "by hand"
    assert notes.read_text() == "second"
    assert workspace.verify() == []


def test_touching_a_file_is_not_editing_it(workspace: Workspace, notes: Path, plan: Path) -> None:
    for file in (notes, plan):
        file.write_text(file.read_text())
        os.utime(file, (1, 1))
    assert workspace.scan() == []


def test_an_edit_that_keeps_size_and_time_is_noticed(workspace: Workspace, notes: Path, plan: Path) -> None:
    for file in (notes, plan):
        times = file.stat().st_atime_ns, file.stat().st_mtime_ns
        file.write_text("FIRST")
        os.utime(file, ns=times)
    assert len(workspace.scan()) == 2


def test_a_file_that_became_a_folder_is_both_a_deletion_and_a_new_file(
    workspace: Workspace, root: Path, notes: Path, bob: Toolbox
) -> None:
    notes.unlink()
    notes.mkdir()
    (notes / "inside.md").write_text("inside")
    workspace.scan()
    assert workspace.scan() == []
    assert (
        ok(bob, "read_from_workspace", agent_id="alice", filename="notes.md/inside.md")["content"] == "inside"
    )
    assert workspace.repair() == []


# Shared files and deliveries


@pytest.mark.parametrize("text", ["by hand", None], ids=["edited", "removed"])
def test_an_edit_of_a_shared_file_is_a_conflict_and_the_journals_version_stays(
    workspace: Workspace, bob: Toolbox, plan: Path, text: str | None
) -> None:
    plan.unlink() if text is None else plan.write_text(text)
    (row,) = workspace.scan()
    assert (row.actor, row.outcome, row.error, row.version, row.base) == (
        *("outside", "conflict", "outside_edit", None),
        1,
    )
    assert workspace.journal.content(row.seq) == text
    read = ok(bob, "collab_read", filepath="plan.md")
    assert (read["version"], read["content"]) == (1, "first")
    assert workspace.scan() == []
    assert [problem.path for problem in workspace.verify()] == ["plan.md"]
    assert workspace.repair() == []
    assert plan.read_text() == "first"


def test_each_further_edit_of_a_shared_file_is_kept(workspace: Workspace, plan: Path) -> None:
    texts = [f"by hand {n}" for n in range(25)]
    for text in texts:
        plan.write_text(text)
        assert len(workspace.scan()) == 1
    assert [workspace.journal.content(row.seq) for row in outside_rows(workspace)] == texts
    plan.write_text(texts[0])
    assert len(workspace.scan()) <= 1
    assert workspace.repair() == []


def test_a_shared_edit_that_was_written_over_unseen_is_kept(
    workspace: Workspace, alice: Toolbox, plan: Path
) -> None:
    plan.write_text("by hand")
    assert ok(alice, "collab_write", filepath="plan.md", content="second", message="m")["version"] == 2
    (row,) = outside_rows(workspace)
    assert (row.tool, row.outcome, row.base) == ("overwritten_edit", "conflict", 1)
    assert workspace.journal.content(row.seq) == "by hand"
    assert (plan.read_text(), workspace.verify()) == ("second", [])


def test_a_binary_edit_that_was_written_over_unseen_is_told_of(
    workspace: Workspace, alice: Toolbox, plan: Path
) -> None:
    plan.write_bytes(b"\xff\0\xfe")
    ok(alice, "collab_write", filepath="plan.md", content="second", message="m")
    (row,) = outside_rows(workspace)
    assert (row.tool, row.outcome, row.error, row.size) == ("overwritten_edit", "conflict", "not_text", 3)


def test_a_stray_shared_file_is_kept_as_a_row_and_cleared_away_by_repair(
    workspace: Workspace, root: Path, bob: Toolbox
) -> None:
    stray = root / "collaborative/current/stray.md"
    stray.write_text("by hand")
    (row,) = workspace.scan()
    assert (row.outcome, workspace.journal.content(row.seq)) == ("conflict", "by hand")
    assert refused(bob, "collab_read", filepath="stray.md")["error"] == "file_not_found"
    assert workspace.repair() == []
    assert not stray.exists()


def test_an_edit_of_a_delivery_does_not_reach_its_receiver(
    workspace: Workspace, bob: Toolbox, data: Path
) -> None:
    data.write_text("by hand")
    (row,) = workspace.scan()
    assert (row.zone, row.outcome, workspace.journal.content(row.seq)) == ("handoff", "conflict", "by hand")
    assert ok(bob, "read_handoff", from_agent="alice", filename="data.csv")["content"] == "first"
    assert workspace.repair() == []
    assert data.read_text() == "first"


def test_views_that_were_meddled_with_are_laid_out_again(
    workspace: Workspace, root: Path, plan: Path, data: Path
) -> None:
    workspace.flush()
    versions = root / "collaborative/.versions/plan.md"
    good = {file: file.read_bytes() for file in (*versions.iterdir(), data.with_name("data.csv.meta.json"))}
    for file in good:
        file.write_text("{}")
    assert {problem.kind for problem in workspace.verify()} == {"version", "history", "metadata"}
    assert workspace.repair() == []
    assert {file: file.read_bytes() for file in good} == good
    for file in good:
        file.unlink()
    assert {problem.kind for problem in workspace.verify()} == {"version", "history", "metadata"}
    assert workspace.repair() == []
    assert {file: file.read_bytes() for file in good} == good


def test_a_path_too_long_for_a_refusals_row_can_be_repaired(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    path = "/".join(["x" * 150] * 6)
    ok(alice, "collab_write", filepath=path, content="first", message="m")
    file = root / "collaborative/current" / path
    file.write_text("by hand")
    (row,) = workspace.scan()
    assert workspace.journal.content(row.seq) == "by hand"
    assert workspace.scan() == []
    assert workspace.repair() == []
    assert file.read_text() == "first"


# Readers and links


def test_a_reader_keeps_what_it_opened(alice: Toolbox, plan: Path) -> None:
    with plan.open() as reading:
        for n in range(20):
            ok(alice, "collab_write", filepath="plan.md", content=f"later {n}", message="m")
        assert reading.read() == "first"


def test_a_hard_link_keeps_what_it_linked(root: Path, alice: Toolbox, plan: Path) -> None:
    backup = root.parent / "backup.md"
    backup.hardlink_to(plan)
    for n in range(20):
        ok(alice, "collab_write", filepath="plan.md", content=f"later {n}", message="m")
    assert backup.read_text() == "first"


@pytest.mark.parametrize("zone", ["agents/alice", "collaborative/current", "handoff/alice_to_bob"])
def test_a_folder_that_was_moved_out_and_linked_back_is_not_written_to(
    root: Path, workspace: Workspace, alice: Toolbox, zone: str
) -> None:
    """It is the same folder as before, but the way to it leads through a symlink now."""

    def write(text: str) -> None:
        workspace.tools("alice").dispatch_tool_call(
            "save_to_my_workspace", {"filename": "folder/x.md", "content": text}
        )
        ok(alice, "collab_write", filepath="folder/x.md", content=text, message="m")
        ok(alice, "handoff_file", to_agent="bob", filename="folder/x.md", content=text, message="m")

    write("first")
    outside = root.parent / "outside"
    shutil.move(root / zone / "folder", outside)
    (root / zone / "folder").symlink_to(outside)
    write("second")
    assert (outside / "x.md").read_text() == "first"


def test_scanning_does_not_depend_on_the_clock(workspace: Workspace, notes: Path) -> None:
    notes.write_text("by hand")
    os.utime(notes, (time.time() + 1e6, time.time() + 1e6))
    assert len(workspace.scan()) == 1


@pytest.mark.parametrize("folder", ["agents/zoe", "handoff/alice_to_bob", "collaborative/current/docs"])
def test_a_new_folder_is_no_file_that_somebody_made(root: Path, workspace: Workspace, folder: str) -> None:
    """Whoever watches the files is told of the folder of the first handoff between two agents, too."""
    os.makedirs(root / folder, exist_ok=True)
    before = workspace.journal.last_seq()
    assert workspace.check([root / folder]) == []
    assert workspace.journal.last_seq() == before
