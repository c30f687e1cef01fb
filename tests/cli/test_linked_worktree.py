"""A linked git worktree as the folder of a task: its files are versions, and its branch is written to the
repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, printed, printed_json, refusal
from watchroom import Workspace


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    git(tmp_path, "init", "--quiet", str(folder))
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


@pytest.mark.parametrize("place", ["tree", "repository/.worktrees/tree"])
def test_a_task_in_a_linked_worktree(capsys: Captured, tmp_path: Path, repository: Path, place: str) -> None:
    tree, team = tmp_path / place, str(tmp_path / "team")
    git(repository, "worktree", "add", "--quiet", "-b", "side", str(tree))
    link = (tree / ".git").read_text()
    with Workspace.open(team) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", str(tree))
        agent = workspace.tools(workspace.members.start(task).id)
        ok(agent, "write_file", path="a.txt", content="two\n")
        ok(agent, "write_file", path="b.txt", content="new\n")
    assert "clean" in printed(capsys, "verify", team)
    done = printed_json(capsys, "git", team, "--branch", "agents", "--task", task.id, "--json")
    assert done["skipped"] == 0
    assert git(repository, "show", "agents:a.txt") == "two\n"
    assert git(repository, "show", "agents:b.txt") == "new\n"
    assert git(tree, "status", "--short") == " M a.txt\n?? b.txt\n", "the worktree stays on its own branch"
    assert (tree / ".git").read_text() == link
    said = refusal(capsys, "git", team, "--branch", "side", "--task", task.id)
    assert "the branch is checked out" in said


def test_a_linked_worktree_whose_repository_is_gone(
    capsys: Captured, tmp_path: Path, repository: Path
) -> None:
    tree, team = tmp_path / "tree", str(tmp_path / "team")
    git(repository, "worktree", "add", "--quiet", str(tree))
    repository.rename(tmp_path / "moved")
    with Workspace.open(team) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", str(tree))
        agent = workspace.tools(workspace.members.start(task).id)
        ok(agent, "write_file", path="b.txt", content="new\n")
    for typed in (("--branch", "agents", "--task", task.id), ("--import", str(tree))):
        said = refusal(capsys, "git", team, *typed)
        assert "it is not a git repository" in said
        assert said.count("\n") == 1
