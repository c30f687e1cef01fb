"""A need for external edits disappears with its cause, and one cause is one need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom.features.overview.model import Need, urgent_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.model import Row

FOLDER = "collaborative/current"


def needs(workspace: Workspace) -> tuple[Need, ...]:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return urgent_needs(model, model.time)


def write(toolbox: Toolbox, path: str, content: str = "one\n", expected: int = 0) -> dict[str, object]:
    return ok(toolbox, "collab_write", filepath=path, content=content, message="m", expected_version=expected)


def edits(file: Path) -> list[tuple[Callable[[], object], Callable[[], object]]]:
    """What somebody does by hand, and how it is undone."""
    return [
        (lambda: file.write_text("by hand\n"), lambda: file.write_text("one\n")),
        (file.unlink, lambda: file.write_text("one\n")),
        (lambda: file.with_name("new.md").write_text("new\n"), file.with_name("new.md").unlink),
    ]


@pytest.mark.parametrize("which", range(3), ids=["changed", "deleted", "new"])
def test_an_edit_that_is_undone_needs_nobody(
    root: Path, workspace: Workspace, alice: Toolbox, which: int
) -> None:
    write(alice, "plan.md")
    edit, undo = edits(root / FOLDER / "plan.md")[which]
    for _ in range(2):
        edit()
        workspace.scan()
        assert [need.kind for need in needs(workspace)] == ["outside"]
        undo()
        assert [row.error for row in workspace.scan()] == ["edit_undone"]
        assert needs(workspace) == ()
        assert workspace.scan() == []
    assert workspace.verify() == []


def test_a_file_that_is_checked_alone_is_seen_to_be_undone(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.write_text("by hand\n")
    workspace.check([file])
    file.write_text("one\n")
    assert [row.error for row in workspace.check([file])] == ["edit_undone"]
    assert needs(workspace) == ()


def test_conflicts_are_listed_newest_first_after_the_newest_edit_is_undone(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    def conflicts() -> list[str]:
        return [each.path for each in read_model(workspace.journal, workspace.journal.last_seq()).conflicts]

    plan, other = (root / FOLDER / each for each in ("plan.md", "other.md"))
    plan.parent.mkdir(parents=True, exist_ok=True)
    for file in (plan, other):
        file.write_text("by hand\n")
        workspace.scan()
    write(alice, "plan.md")
    plan.write_text("by hand again\n")
    workspace.scan()
    assert conflicts() == ["plan.md", "other.md"]
    plan.write_text("one\n")
    workspace.scan()
    assert conflicts() == ["other.md", "plan.md"]


def test_a_delivery_and_a_board_that_are_edited_and_restored_need_nobody(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="a.md", content="one\n", message="m")
    ok(workspace.tools_for_human("dana"), "whiteboard_write", board="global", content="one\n", message="m")
    for file in (root / "handoff/alice_to_bob/a.md", root / "global-whiteboard.md"):
        kept = file.read_text()
        file.write_text("by hand\n")
        workspace.scan()
        assert [need.kind for need in needs(workspace)] == ["outside"]
        file.write_text(kept)
        workspace.scan()
        assert needs(workspace) == ()


def test_a_configuration_that_is_restored_needs_nobody(root: Path, workspace: Workspace) -> None:
    file = root / ".watchroom/config.toml"
    kept = file.read_text()
    file.write_text("agents = 3\n")
    workspace.scan()
    assert [need.row.error for need in needs(workspace)] == ["config_invalid"]
    file.write_text(kept)
    workspace.scan()
    assert needs(workspace) == ()


def test_a_text_that_a_newer_version_replaced_on_disk_still_waits(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.write_text("by hand\n")
    workspace.scan()
    write(alice, "plan.md", "two\n", 1)
    assert workspace.scan() == []
    assert [need.kind for need in needs(workspace)] == ["outside"]
    file.write_text("again\n")
    workspace.scan()
    file.write_text("two\n")
    workspace.scan()
    (need,) = needs(workspace)
    assert workspace.journal.content(need.row.seq) == "by hand\n"


def test_an_edit_that_a_repair_replaced_still_waits(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.write_text("by hand\n")
    for _ in range(2):
        assert workspace.repair() == []
        assert file.read_text() == "one\n"
        (need,) = needs(workspace)
        assert (need.kind, workspace.journal.content(need.row.seq)) == ("outside", "by hand\n")


def test_nobody_commits_an_edit_that_is_gone(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.write_text("by hand\n")
    (edit,) = workspace.scan()
    file.write_text("one\n")
    given = {"filepath": "plan.md", "content": "by hand\n", "expected_version": 1, "conflicts": [edit.seq]}
    for _ in range(2):
        found = refused(workspace.tools_for_human("dana"), "resolve_conflict", **given, message="m")
        assert found["error"] == "conflict_settled"
    assert file.read_text() == "one\n"
    assert needs(workspace) == ()


def test_many_files_that_came_together_are_one_need(root: Path, workspace: Workspace) -> None:
    folder = root / FOLDER / "imported"
    folder.mkdir()
    for number in range(120):
        (folder / f"{number:03}.md").write_text(f"{number}\n")
    workspace.scan()
    (need,) = needs(workspace)
    assert (need.kind, need.paths) == ("outside", 120)
    assert need.row.path.startswith("imported/")
    given = {"filepath": need.row.path, "content": "x\n", "expected_version": 0, "conflicts": [need.row.seq]}
    ok(workspace.tools_for_human("dana"), "resolve_conflict", **given, message="m")
    (left,) = needs(workspace)
    assert (left.identity, left.paths) == (need.identity, 119)
    shutil.rmtree(folder)
    workspace.scan()
    assert [each.row.path for each in needs(workspace)] == [need.row.path]
    assert needs(workspace)[0].row.sha256 is None


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_not_a_file_any_more_needs_a_person_until_it_is_removed(
    root: Path, workspace: Workspace, alice: Toolbox, kind: str
) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.unlink()
    put_in_place(file, kind)
    result = write(alice, "plan.md", "two\n", 1)
    assert "could not be written to disk" in str(result["notice"])
    for _ in range(2):
        workspace.scan()
        assert [(need.kind, need.row.path, need.row.error) for need in needs(workspace)] == [
            ("outside", "plan.md", "not_a_file")
        ]
    assert [problem.what for problem in workspace.repair()] == ["is not a regular file"]
    remove(file)
    workspace.scan()
    assert file.read_text() == "two\n"
    assert needs(workspace) == ()
    assert workspace.verify() == []
    file.write_text("by hand\n")
    (edit,) = workspace.scan()
    assert (edit.error, workspace.journal.content(edit.seq)) == ("outside_edit", "by hand\n")


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_put_in_the_place_of_a_file_needs_a_person_before_anybody_writes(
    root: Path, workspace: Workspace, alice: Toolbox, kind: str
) -> None:
    write(alice, "plan.md")
    ok(alice, "save_to_my_workspace", filename="own.md", content="one\n")
    files = root / FOLDER / "plan.md", root / "agents/alice/own.md"
    for file in files:
        file.unlink()
        put_in_place(file, kind)
        put_in_place(file.with_name("beside"), kind)
    workspace.scan()
    assert sorted(need.row.path for need in needs(workspace)) == ["alice/own.md", "plan.md"]
    for file in files:
        remove(file)
    workspace.scan()
    assert needs(workspace) == ()
    assert [file.read_text() for file in files] == ["one\n", "one\n"]


def test_a_text_that_replaces_a_link_is_an_edit_like_any_other(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "plan.md")
    file = root / FOLDER / "plan.md"
    file.unlink()
    file.symlink_to("/etc/hostname")
    workspace.scan()
    remove(file)
    file.write_text("by hand\n")
    rows: list[Row] = workspace.scan()
    assert [row.error for row in rows] == ["outside_edit"]
    (need,) = needs(workspace)
    assert need.row.seq == rows[0].seq


def put_in_place(path: Path, kind: str) -> None:
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)


def remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
