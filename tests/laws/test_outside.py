"""What is done to the files behind the journal's back is noticed by its content, kept as a row, and never followed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from calls import ok, refused
from evidence import all_rows, outside_rows
from watchroom import Row, Toolbox, Workspace
from watchroom.model import MAX_TEXT_BYTES


def described(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    return [(row.tool, row.path, row.outcome, row.error) for row in rows]


@pytest.fixture
def notes(root: Path, alice: Toolbox) -> Path:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="first")
    return root / "agents/alice/notes.md"


@pytest.fixture
def plan(root: Path, alice: Toolbox) -> Path:
    ok(alice, "collab_write", filepath="plan.md", content="first", message="m")
    return root / "collaborative/current/plan.md"


@pytest.fixture
def data(root: Path, alice: Toolbox) -> Path:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="first", message="m")
    return root / "handoff/alice_to_bob/data.csv"


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


# What cannot be kept


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
    with Workspace.open(root) as again:
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


# Restarts


def test_files_that_a_power_cut_took_are_laid_out_again_and_not_taken_for_edits(
    workspace: Workspace, root: Path, alice: Toolbox, notes: Path, plan: Path, data: Path
) -> None:
    """The journal was synced, its views were not: after a restart they may be empty, missing or of yesterday."""
    ok(alice, "save_to_my_workspace", filename="notes.md", content="second")
    notes.write_text("first")
    plan.write_bytes(b"\0" * 5)
    data.unlink()
    lock = root / ".watchroom/lock"
    seq, _, boot = lock.read_text().strip().partition(" ")
    lock.write_text(f"{seq} {'0' * len(boot)}".ljust(80) + "\n")
    with Workspace.open(root, scan=False) as again:
        assert outside_rows(again) == []
        assert (notes.read_text(), plan.read_text(), data.read_text()) == ("second", "first", "first")
        assert again.verify() == []


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


# The configuration


def test_an_agent_added_to_the_configuration_by_hand_appears(workspace: Workspace, root: Path) -> None:
    config = root / ".watchroom/config.toml"
    config.write_text(config.read_text() + '\n[agents.dora]\nrole = "reviewer"\nlayer = "mid"\n')
    (row,) = workspace.scan()
    assert (row.actor, row.zone, row.outcome) == ("outside", "config", "ok")
    assert (workspace.config.agents["dora"].role, workspace.config.agents["dora"].layer) == (
        "reviewer",
        "mid",
    )
    ok(workspace.tools("dora"), "save_to_my_workspace", filename="x", content="x")
    assert workspace.scan() == []
    assert workspace.verify() == []


def test_an_agent_taken_out_of_the_configuration_by_hand_is_gone(
    workspace: Workspace, root: Path, bob: Toolbox
) -> None:
    config = root / ".watchroom/config.toml"
    config.write_text("[agents.bob]\n[agents.charlie]\n")
    workspace.scan()
    assert list(workspace.config.agents) == ["bob", "charlie"]
    refusal = refused(bob, "handoff_file", to_agent="alice", filename="x", content="x", message="m")
    assert refusal["error"] == "unknown_agent"


def test_a_delivery_outlives_the_registration_of_its_sender(
    workspace: Workspace, root: Path, bob: Toolbox, data: Path
) -> None:
    (root / ".watchroom/config.toml").write_text("[agents.bob]\n")
    workspace.scan()
    assert [each["filename"] for each in ok(bob, "check_my_handoffs")["handoffs"]] == ["data.csv"]
    assert ok(bob, "read_handoff", from_agent="alice", filename="data.csv")["content"] == "first"


@pytest.mark.parametrize(
    "text",
    [
        "[agents.alice",
        'language = "xx"\n[agents.eve]\n',
        "[agents.Eve]\n",
        '[agents.eve]\nlayer = "middle"\n',
        '[agents.eve]\nsupervisor = "nobody"\n',
        '[agents.eve]\nsupervisor = "eve"\n',
        "agents = 3\n",
        "[agents]\neve = 3\n",
    ],
)
def test_a_configuration_broken_by_hand_is_kept_and_the_last_valid_one_holds(
    workspace: Workspace, root: Path, text: str
) -> None:
    config = root / ".watchroom/config.toml"
    good = config.read_text()
    config.write_text(text)
    (row,) = workspace.scan()
    assert (row.outcome, row.error, workspace.journal.content(row.seq)) == ("failed", "config_invalid", text)
    assert list(workspace.config.agents) == ["alice", "bob", "charlie"]
    assert workspace.scan() == []
    with Workspace.open(root) as again:
        assert list(again.config.agents) == ["alice", "bob", "charlie"]
        assert config.read_text() == text
    assert workspace.repair() == []
    assert config.read_text() == good


def test_a_configuration_removed_by_hand_is_laid_out_again(workspace: Workspace, root: Path) -> None:
    config = root / ".watchroom/config.toml"
    good = config.read_text()
    config.unlink()
    workspace.scan()
    assert list(workspace.config.agents) == ["alice", "bob", "charlie"]
    assert workspace.repair() == []
    assert config.read_text() == good


def test_scanning_does_not_depend_on_the_clock(workspace: Workspace, notes: Path) -> None:
    notes.write_text("by hand")
    os.utime(notes, (time.time() + 1e6, time.time() + 1e6))
    assert len(workspace.scan()) == 1
