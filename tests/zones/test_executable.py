"""The executable bit of a file is kept with its versions, wherever they go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from calls import ok
from history.repositories import git, needs_git
from watchroom import Toolbox, Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.history.comparison import find_versions, read_changed_paths, read_patch
from watchroom.history.git import export_history
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.file_versions import is_executable
from watchroom.model import Row, Zone

SCRIPT = "run.sh"


def write(toolbox: Toolbox, content: str, expected: int = -1) -> None:
    ok(toolbox, "collab_write", filepath=SCRIPT, content=content, message="m", expected_version=expected)


def may_run(file: Path) -> bool:
    return os.access(file, os.X_OK)


def head(workspace: Workspace, zone: Zone, path: str) -> Row:
    row = workspace.journal.head(zone, path)
    assert row is not None
    return row


@pytest.fixture
def script(root: Path, workspace: Workspace, alice: Toolbox) -> Path:
    """The shared file, which a person made executable in version 2."""
    write(alice, "one\n", 0)
    file = root / "collaborative/current" / SCRIPT
    file.chmod(0o755)
    write(alice, "two\n", 1)
    return file


def test_the_next_version_keeps_the_mode_that_the_file_has(
    workspace: Workspace, alice: Toolbox, script: Path
) -> None:
    assert may_run(script)
    assert is_executable(head(workspace, "collab", SCRIPT))
    (listed,) = ok(alice, "collab_list")["files"]
    assert listed["executable"] is True
    script.chmod(0o644)
    write(alice, "three\n", 2)
    assert not may_run(script)
    assert not is_executable(head(workspace, "collab", SCRIPT))
    assert "executable" not in ok(alice, "collab_list")["files"][0]


def test_the_mode_comes_back_with_the_file(workspace: Workspace, alice: Toolbox, script: Path) -> None:
    script.unlink()
    write(alice, "three\n", 2)
    assert may_run(script)
    script.unlink()
    workspace.repair()
    assert may_run(script)


def test_a_rollback_brings_the_mode_of_the_version_back(
    workspace: Workspace, alice: Toolbox, script: Path
) -> None:
    ok(alice, "collab_rollback", filepath=SCRIPT, to_version=1, message="m")
    assert (script.read_text(), may_run(script)) == ("one\n", False)
    ok(alice, "collab_rollback", filepath=SCRIPT, to_version=2, message="m")
    assert (script.read_text(), may_run(script)) == ("two\n", True)


def test_a_revert_brings_the_mode_back(workspace: Workspace, bob: Toolbox, script: Path) -> None:
    since = workspace.journal.last_seq()
    script.chmod(0o644)
    write(bob, "three\n", 2)
    workspace.reverts.apply(CallContext("human:ann"), RevertSelection(("bob",), after=since))
    assert (script.read_text(), may_run(script)) == ("two\n", True)
    assert workspace.verify() == []


def test_the_mode_is_exported_and_compared(workspace: Workspace, script: Path, tmp_path: Path) -> None:
    workspace.export(workspace.journal.last_seq(), tmp_path / "out")
    assert may_run(tmp_path / "out/collaborative/current" / SCRIPT)
    (changed,) = read_changed_paths(workspace.journal, 0, workspace.journal.last_seq(), [SCRIPT])
    pair = find_versions(workspace.journal, changed)
    assert pair is not None
    assert "new file mode 100755\n" in read_patch(workspace.journal, pair)


def test_private_files_and_deliveries_keep_their_mode(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename=SCRIPT, content="one\n")
    ok(alice, "handoff_file", to_agent="bob", filename=SCRIPT, content="one\n", message="m")
    places = root / "agents/alice" / SCRIPT, root / "handoff/alice_to_bob" / SCRIPT
    for file in places:
        file.chmod(0o755)
    ok(alice, "save_to_my_workspace", filename=SCRIPT, content="two\n")
    ok(alice, "handoff_file", to_agent="bob", filename=SCRIPT, content="two\n", message="m")
    assert all(map(may_run, places))
    places[0].write_text("by hand\n")
    workspace.scan()
    row = head(workspace, "private", f"alice/{SCRIPT}")
    assert (row.actor, is_executable(row)) == ("outside", True)


def test_a_person_commits_an_executable_file(root: Path, workspace: Workspace) -> None:
    file = root / "collaborative/current/new.sh"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    (edit,) = workspace.scan()
    dana = workspace.tools_for_human("dana")
    given = {"filepath": "new.sh", "content": "#!/bin/sh\n", "expected_version": 0, "conflicts": [edit.seq]}
    ok(dana, "resolve_conflict", **given, message="m")
    assert is_executable(head(workspace, "collab", "new.sh"))
    assert may_run(file)


@needs_git
def test_the_mode_goes_to_git_and_comes_from_there(
    root: Path, workspace: Workspace, script: Path, tmp_path: Path
) -> None:
    export_history(workspace.journal, str(tmp_path / "out.git"))
    assert git(
        tmp_path / "out.git", "ls-tree", "-r", "main", "--", f"collaborative/current/{SCRIPT}"
    ).startswith("100755")
    source = tmp_path / "source"
    subprocess.run(["git", "init", "-q", source], check=True)
    for name in ("a.sh", "b.txt"):
        (source / name).write_text("x\n")
    (source / "a.sh").chmod(0o755)
    git(source, "add", ".")
    git(source, "commit", "-qm", "one")
    assert workspace.import_git(str(source), "human:dana").versions == 2
    current = root / "collaborative/current"
    assert (may_run(current / "a.sh"), may_run(current / "b.txt")) == (True, False)
    (source / "b.txt").chmod(0o755)
    git(source, "commit", "-qam", "two")
    imported = workspace.import_git(str(source), "human:dana")
    assert (imported.versions, imported.conflicts, imported.unchanged) == (1, 0, 1)
    assert may_run(current / "b.txt")
    assert workspace.verify() == []
