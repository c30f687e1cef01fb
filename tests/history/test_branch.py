"""A branch of what was done to a task's files, and a repository's files brought into the workspace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, printed, printed_json, refusal, run
from history.repositories import check, git, needs_git
from watchroom import Agent, Workspace
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext

pytestmark = needs_git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit that has a program, a link, bytes, and names that no path here can have."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "readme.md").write_text("old\n")
    (folder / "link").symlink_to("readme.md")
    (folder / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    (folder / "con.md").write_text("a device\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Begin")
    return folder


def test_a_tasks_files_become_a_branch_upon_its_repository_and_nothing_else_is_touched(
    capsys: Captured, project: Path, root: Path
) -> None:
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", project).id
        workspace.register([Agent("alice", task=task)])
        alice = workspace.tools("alice")
        ok(alice, "write_file", path="readme.md", content="new\n")
        ok(alice, "write_file", path="src/a.py", content="a = 1\n")
    before = git(project, "status", "--porcelain")
    asked = ("git", str(root), "--branch", "agent/alice", "--task", task)
    assert "agent/alice" in printed(capsys, *asked)
    check(project)
    assert git(project, "status", "--porcelain") == before
    assert git(project, "rev-list", "--count", "main..agent/alice").strip() == "1"
    assert git(project, "diff", "--name-status", "main", "agent/alice").split() == [
        "M",
        "readme.md",
        "A",
        "src/a.py",
    ]
    assert "alice <alice@watchroom.invalid>" in git(project, "log", "-1", "--format=%an <%ae>", "agent/alice")
    with Workspace.open(root) as workspace:
        ok(workspace.tools("alice"), "write_file", path="run.sh", content="#!/bin/sh\necho\n")
        (project / "logo.png").write_bytes(b"\x00logo")
        workspace.task_files.record_changes(
            CallContext("alice"), ChangeAuthor(CallContext("alice", "run_command"))
        )
    assert printed_json(capsys, *asked, "--json")["commits"] == 1
    assert printed_json(capsys, *asked, "--json")["commits"] == 0
    assert "100755" in git(project, "ls-tree", "agent/alice", "run.sh")
    assert git(project, "show", "agent/alice:logo.png") == "\x00logo"
    for name in ("main", "-x", "a..b"):
        assert name in refusal(capsys, "git", str(root), f"--branch={name}", "--task", task)
    git(project, "branch", "other")
    assert "other" in refusal(capsys, "git", str(root), "--branch", "other", "--task", task)


def test_the_texts_of_a_commit_become_shared_files_and_what_cannot_is_listed(
    capsys: Captured, project: Path, root: Path
) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        ok(
            workspace.tools("alice"),
            "collab_write",
            filepath="readme.md",
            content="mine\n",
            message="m",
            expected_version=0,
        )
    done = printed_json(capsys, "git", str(root), "--import", str(project), "--as", "dana", "--json")
    assert (done["versions"], done["conflicts"]) == (1, 1)
    assert {each["path"]: each["reason"] for each in done["omitted"]} == {
        "link": "link", "picture.png": "bytes", "con.md": "name",
    }  # fmt: skip
    with Workspace.open(root) as workspace:
        head = workspace.journal.head("collab", "run.sh")
        assert head is not None
        assert (head.actor, head.detail["commit"]) == (
            "human:dana",
            git(project, "rev-parse", "HEAD").strip(),
        )
        assert head.detail["blob"] == git(project, "rev-parse", "HEAD:run.sh").strip()
    again = printed_json(capsys, "git", str(root), "--import", str(project), "--as", "dana", "--json")
    assert (again["versions"], again["unchanged"]) == (0, 1)


def test_a_branch_of_a_task_begins_at_the_commit_that_was_imported(
    capsys: Captured, project: Path, root: Path, tmp_path: Path
) -> None:
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", tmp_path / "empty").id
        workspace.register([Agent("alice", task=task)])
    asked = ("git", str(root), "--import", str(project), "--task", task, "--as", "dana", "--json")
    assert printed_json(capsys, *asked)["versions"] == 3
    assert (tmp_path / "empty/picture.png").read_bytes() == b"\x89PNG\x00\xff"
    assert os.access(tmp_path / "empty/run.sh", os.X_OK)
    assert not os.access(tmp_path / "empty/readme.md", os.X_OK)
    with Workspace.open(root) as workspace:
        ok(workspace.tools("alice"), "write_file", path="readme.md", content="new\n")
    branch = (
        "git",
        str(root),
        "--branch",
        "agent/alice",
        "--task",
        task,
        "--repository",
        str(project),
        "--json",
    )
    done = printed_json(capsys, *branch)
    assert (done["commits"], done["base"]) == (1, git(project, "rev-parse", "main").strip())
    assert git(project, "diff", "--name-only", "main", "agent/alice").split() == ["readme.md"]
    assert git(project, "show", "agent/alice:readme.md") == "new\n"


def test_files_beneath_a_submodule_do_not_replace_it(capsys: Captured, project: Path, root: Path) -> None:
    library = project.parent / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    (library / "f").write_text("1\n")
    git(library, "add", "f")
    git(library, "commit", "-qm", "1")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor")
    git(project, "commit", "-qm", "Add a submodule")
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", project).id
        workspace.register([Agent("alice", task=task)])
        ok(workspace.tools("alice"), "write_file", path="vendor/f", content="2\n")
        ok(workspace.tools("alice"), "write_file", path="vendor-notes.md", content="kept\n")
    status, out, _ = run(capsys, "git", str(root), "--branch", "work", "--task", task, "--json")
    assert status == 1
    told = json.loads(out)
    assert {(each["path"], each["reason"]) for each in told["left_out"]} == {
        (f"{task}/vendor/f", "submodule")
    }
    assert git(project, "ls-tree", "work", "vendor").startswith("160000 ")
    assert git(project, "show", "work:vendor-notes.md") == "kept\n"
    check(project)


def test_a_branch_whose_changes_are_all_left_out_says_so_once(
    capsys: Captured, project: Path, root: Path
) -> None:
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", project).id
        workspace.register([Agent("alice", task=task)])
        (project / os.fsdecode(b"\xff.txt")).write_text("text\n")
        workspace.task_files.record_changes(
            CallContext("alice"), ChangeAuthor(CallContext("alice", "run_command"))
        )
        tree = git(project, "rev-parse", "main^{tree}")
        asked = ("git", str(root), "--branch", "work", "--task", task, "--json")
        status, out, _ = run(capsys, *asked)
        assert (status, json.loads(out)["commits"]) == (1, 1)
        assert git(project, "rev-parse", "work^{tree}") == tree
        assert "udcff.txt: not_unicode" in git(project, "log", "-1", "--format=%B", "work")
        assert printed_json(capsys, *asked)["commits"] == 0
        ok(workspace.tools("alice"), "write_file", path="a.md", content="a\n")
        assert printed_json(capsys, *asked)["commits"] == 1
    assert git(project, "show", "work:a.md") == "a\n"


def test_a_file_name_that_is_not_utf8_is_left_out_and_said(
    capsys: Captured, project: Path, root: Path
) -> None:
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", project).id
        workspace.register([Agent("alice", task=task)])
        (project / os.fsdecode(b"\xff.txt")).write_text("text\n")
        workspace.task_files.record_changes(
            CallContext("alice"), ChangeAuthor(CallContext("alice", "run_command"))
        )
    status, out, _ = run(capsys, "git", str(root), "--branch", "work", "--task", task, "--json")
    assert status == 1
    told = json.loads(out)
    assert [each["reason"] for each in told["left_out"]] == ["not_unicode"]
    assert "udcff" not in git(project, "ls-tree", "-r", "--name-only", "work")
