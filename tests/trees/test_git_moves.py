"""Commands that change files and have git move to another commit: the changes keep their authors."""

from __future__ import annotations

import pytest
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.features.trees.rows import REPO, grade_of


def authors(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    workspace.trees.refresh_all()
    tree = workspace.trees.all()[0]
    return [(row.actor, grade_of(row)) for row in workspace.journal.history(REPO, tree.path(name))]


BASELINE = ("system", "git")


@pytest.mark.parametrize(
    "command",
    [
        "git commit -qam m",
        "git commit -qam m; git checkout -qb other",
        "git commit -qam m; git checkout -q --detach",
        "git commit -qam m; git reset -q --hard HEAD",
        "git add a.txt; git commit -qm m; git commit -q --amend --no-edit",
        "git add a.txt",
        "git checkout -qb other",
        "git stash -q; git stash pop -q",
        "git checkout -qb other; git commit -qam m",
    ],
)
def test_what_a_command_changed_and_committed_is_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient, command: str
) -> None:
    alice.bash(f"sed -i s/two/TWO/ a.txt; {command}")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "window")]


def test_a_commit_and_a_switch_back_leave_no_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("git checkout -qb other; sed -i s/two/TWO/ a.txt; git commit -qam m; git checkout -q main")
    assert authors(kept, "a.txt") == []


def test_what_was_uncommitted_goes_to_another_branch_with_its_author(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.git("branch", "other")
    alice.edit("a.txt", "two", "TWO")
    repository.git("checkout", "-q", "other")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "tool")]


def test_a_branch_that_git_checks_out_is_git_s_work(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.edit("a.txt", "two", "TWO")
    repository.git("commit", "-qam", "m")
    kept.trees.refresh_all()
    repository.git("checkout", "-q", "-b", "old", "HEAD~1")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "tool"), ("outside", "git")]


def test_what_is_changed_back_by_hand_is_not_git_s_work(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    before = repository.read("a.txt")
    alice.edit("a.txt", "two", "TWO")
    repository.write("a.txt", before)
    # The index is another one, but not because of the file.
    repository.write("b.txt", "staged\n")
    repository.git("add", "b.txt")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "tool"), ("outside", "external")]


def test_what_a_command_changes_back_is_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.edit("a.txt", "two", "TWO")
    alice.bash("sed -i s/TWO/two/ a.txt; git status")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "tool"), ("alice", "window")]


def test_what_git_restores_is_git_s_work(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.edit("a.txt", "two", "TWO")
    repository.git("restore", "a.txt")
    assert authors(kept, "a.txt") == [BASELINE, ("alice", "tool"), ("outside", "git")]


@pytest.mark.parametrize("more", ["", "--no-commit"])
def test_what_git_merges_is_git_s_work(
    kept: Workspace, repository: Repository, alice: ScriptedClient, more: str
) -> None:
    alice.edit("a.txt", "two", "TWO")
    repository.git("commit", "-qam", "m")
    repository.git("checkout", "-q", "-b", "other", "HEAD~1")
    repository.commit(b__txt="B\n")
    kept.trees.refresh_all()
    repository.git("merge", "-q", "--no-edit", *more.split(), "main")
    assert authors(kept, "a.txt")[2:] == [("outside", "git"), ("outside", "git")]


def test_a_file_that_git_drops_and_leaves_has_a_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.git("rm", "-q", "--cached", "a.txt")
    repository.git("commit", "-q", "-m", "dropped")
    assert authors(kept, "a.txt") == [("outside", "git")]
    tree = kept.trees.all()[0]
    assert [each.path for each in kept.agent_commits.plan(tree.git).files] == ["a.txt"]


def test_a_binary_file_in_a_conflict_that_nobody_changed_has_no_version(repository: Repository) -> None:
    path = repository.folder / "bin"
    for branch in ("main", "other"):
        if branch == "other":
            repository.git("checkout", "-q", "-b", branch, "HEAD~1")
        path.write_bytes(b"\0" + branch.encode())
        repository.commit()
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        with pytest.raises(AssertionError, match="merge"):
            repository.git("merge", "-q", "main")
        assert authors(workspace, "bin") == []
        repository.write("b.txt", "staged\n")
        repository.git("add", "b.txt")
        assert authors(workspace, "bin") == []
