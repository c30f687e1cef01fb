"""What cannot be kept: told of once, and left alone; what only looks like an edit: laid out again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from calls import ok, refused
from evidence import all_rows, outside_rows
from hostile.deep_trees import deep_tree
from laws.outside import described
from watchroom import Toolbox, Workspace
from watchroom.model import MAX_TEXT_BYTES
from watchroom.platform import Platform


class RestartedPlatform(Platform):
    """This machine, in its next run."""

    def boot_id(self) -> str:
        return "the next"


def unkeepable(root: Path, kind: str) -> Path:
    """Something that is no text of ours, in alice's zone."""
    zone = root / "agents/alice"
    if kind == "binary":
        (zone / "x.bin").write_bytes(b"a\0b")
        return zone / "x.bin"
    if kind == "not UTF-8":
        (zone / "x.txt").write_bytes(b"caf\xe9")
        return zone / "x.txt"
    if kind == "too large":
        (zone / "x.log").write_bytes(b"x" * (MAX_TEXT_BYTES + 1))
        return zone / "x.log"
    if kind == "name":
        (zone / "con.txt").write_text("x")
        return zone / "con.txt"
    if kind == "control character":
        (zone / "a\nb").write_text("x")
        return zone / "a\nb"
    if kind == "name not UTF-8":
        name = os.fsencode(zone) + b"/caf\xe9.md"
        with open(name, "w") as file:
            file.write("x")
        return Path(os.fsdecode(name))
    if kind == "unknown owner":
        (root / "agents/nobody").mkdir()
        (root / "agents/nobody/x.md").write_text("x")
        return root / "agents/nobody/x.md"
    if kind == "no owner":
        (root / "agents/x.md").write_text("x")
        return root / "agents/x.md"
    if kind == "pipe":
        os.mkfifo(zone / "pipe")
        return zone / "pipe"
    target = root.parent / "secret.md"
    target.write_text("secret")
    (zone / "link.md").symlink_to(target)
    return zone / "link.md"


KINDS = {
    "binary": "not_text",
    "not UTF-8": "not_text",
    "too large": "too_large",
    "name": "invalid_path",
    "control character": "invalid_path",
    "name not UTF-8": "invalid_path",
    "unknown owner": "unknown_agent",
    "no owner": "invalid_path",
    "pipe": "not_text",
    "symlink": "not_text",
}


@pytest.mark.parametrize(("kind", "error"), KINDS.items(), ids=KINDS)
def test_what_cannot_be_kept_is_told_of_once_and_left_alone(
    workspace: Workspace, root: Path, kind: str, error: str
) -> None:
    odd = unkeepable(root, kind)
    before = odd.lstat()
    (row,) = workspace.scan()
    assert (row.actor, row.tool, row.outcome, row.error) == ("outside", "outside_edit", "failed", error)
    assert row.version is None
    assert workspace.scan() == []
    assert len(workspace.verify()) == 1
    assert len(workspace.repair()) == 1
    after = odd.lstat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime_ns,
    )
    assert len(outside_rows(workspace)) == 1
    contents = [workspace.journal.content(row.seq) for row in all_rows(workspace.journal)]
    assert "secret" not in contents
    with Workspace.open(root, platform=RestartedPlatform()) as again:
        assert len(outside_rows(again)) == 1
        odd.unlink()
        assert again.repair() == []


def test_a_private_file_replaced_by_binary_is_left_until_its_owner_saves_again(
    workspace: Workspace, alice: Toolbox, notes: Path
) -> None:
    notes.write_bytes(b"\0")
    assert described(workspace.scan()) == [("outside_edit", "alice/notes.md", "failed", "not_text")]
    error = refused(alice, "read_from_workspace", agent_id="alice", filename="notes.md")["error"]
    assert error == "not_text"
    workspace.repair()
    assert notes.read_bytes() == b"\0"
    assert ok(alice, "save_to_my_workspace", filename="notes.md", content="second")["version"] == 2
    assert workspace.verify() == []


def test_files_that_a_power_cut_took_are_laid_out_again_and_not_taken_for_edits(
    workspace: Workspace, root: Path, alice: Toolbox, notes: Path, plan: Path, data: Path
) -> None:
    """The journal was synced, its views were not: after a restart they may be empty, missing or of yesterday."""
    ok(alice, "save_to_my_workspace", filename="notes.md", content="second")
    ok(alice, "save_to_my_workspace", filename="notes.md", content="third")
    notes.write_text("first")
    plan.write_bytes(b"\0" * 5)
    data.unlink()
    ok(alice, "collab_write", filepath="kept.md", content="kept", message="m")
    workspace.flush()
    (root / "collaborative/.versions/kept.md/v1.txt").write_bytes(b"")
    with Workspace.open(root, scan=False, platform=RestartedPlatform()) as again:
        assert outside_rows(again) == []
        assert (notes.read_text(), plan.read_text(), data.read_text()) == ("third", "first", "first")
        assert again.verify() == []


@pytest.mark.parametrize("zone", ["agents/alice", "collaborative/current", "handoff/alice_to_bob"])
def test_a_tree_too_deep_to_name_is_told_of_once_and_stops_nobody(
    workspace: Workspace, root: Path, zone: str
) -> None:
    ok(workspace.tools("alice"), "handoff_file", to_agent="bob", filename="x", content="x", message="m")
    with deep_tree(root / zone / "d", 1100):
        (row,) = workspace.scan()
        assert (row.outcome, row.error) == ("failed", "invalid_path")
        assert workspace.scan() == []
        ok(workspace.tools("bob"), "collab_write", filepath="plan.md", content="x", message="m")
