"""Commits, pull requests and reverts of unusual files, and in unusual repositories."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees.git_repository import Repository
from trees.test_landing import DANA, TEXT, Tree, resolve, status
from trees.test_landing import texts as texts_in
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.errors import NothingToCommit
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.landing import LandingRecord
from watchroom.features.trees.pull_requests import PullRequestOptions, PullRequestPlan
from watchroom.texts import catalogue


def tree_of(workspace: Workspace) -> GitTree:
    return next(each.git for each in workspace.trees.all() if each.git.git == each.git.common)


def commit(workspace: Workspace, *agents: str) -> None:
    workspace.trees.refresh_all()
    workspace.agent_commits.commit(DANA, tree_of(workspace), agents or None, "work")


def plan_pull_request(workspace: Workspace) -> PullRequestPlan:
    workspace.trees.refresh_all()
    options = PullRequestOptions(into="base", branch="mine")
    return workspace.pull_requests.plan(tree_of(workspace), options, catalogue("en"))


def list_files(repository: Repository, tree: str) -> str:
    return repository.git("ls-tree", "-r", tree)


def list_all(repository: Repository) -> str:
    """Return the files of the tree that ``git add --all`` makes."""
    repository.git("add", "--all")
    return list_files(repository, repository.git("write-tree"))


# Links


def test_a_link_that_replaces_a_file_is_committed_with_its_author(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    bob.bash("echo six >> a.txt")
    alice.bash("ln -sf a.txt b.txt")
    commit(kept, "alice")
    assert repository.git("log", "-1", "--format=%an") == "alice"
    assert repository.git("cat-file", "-p", "HEAD:b.txt") == "a.txt"
    assert status(repository.folder) == " M a.txt"
    with pytest.raises(NothingToCommit):
        commit(kept, "alice")
    commit(kept)
    assert list_files(repository, "HEAD") == list_all(repository)
    alice.bash("rm b.txt")
    commit(kept, "alice")
    assert status(repository.folder) == ""


def test_a_binary_file_that_a_link_replaces_is_committed_with_its_author(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("printf '\\0' > b.txt")
    alice.bash("ln -sf a.txt b.txt")
    commit(kept, "alice")
    assert list_files(repository, "HEAD") == list_all(repository)


def test_files_behind_a_link_are_deleted(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.commit(**{"one/a": "a\n", "two/b": "b\n"})
    (repository.folder / "two" / "a").symlink_to("b")
    repository.commit()
    kept.trees.refresh_all()
    alice.bash("rm -r one && ln -s two one")
    commit(kept, "alice")
    assert status(repository.folder) == "?? one"


def test_a_pull_request_has_links_and_files_staged_before_the_first_version(repository: Repository) -> None:
    repository.commit(**{"folder/x": "x\n", "gone__txt": "gone\n", "staged__txt": "1\n", "both__txt": "1\n"})
    repository.git("branch", "base")
    repository.write("new.sh", "new\n")
    repository.write("staged.txt", "2\n")
    repository.write("both.txt", "2\n")
    (repository.folder / "new.sh").chmod(0o755)
    (repository.folder / "gone.txt").unlink()
    repository.git("add", "--all")
    repository.write("both.txt", "3\n")
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        alice = ScriptedClient(workspace, "alice", repository.folder)
        alice.bash("ln -sf a.txt b.txt; ln -s b.txt link; rm -r folder; ln -s . folder; echo six >> a.txt")
        plan = plan_pull_request(workspace)
        staged = repository.git("diff", "--cached", "--name-only")
        commit = workspace.pull_requests.open(
            DANA, tree_of(workspace), plan, catalogue("en"), is_pushed=False
        ).commit
        assert repository.git("diff", "--cached", "--name-only") == staged
    names = repository.git("log", "--format=%an", f"base..{commit}").split("\n")
    assert sorted(names) == ["Pat", "alice"]
    assert list_files(repository, commit) == list_all(repository)


# Repositories


@pytest.fixture
def long_ids(tmp_path: Path) -> Iterator[tuple[Workspace, Repository]]:
    """A repository with SHA-256, and its workspace. A file was deleted since the branch ``base``."""
    repository = Repository(tmp_path / "long", object_format="sha256")
    repository.commit(a__txt=TEXT, b__txt="b\n", c__txt="c\n")
    repository.git("branch", "base")
    repository.git("rm", "--quiet", "c.txt")
    repository.commit()
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        yield workspace, repository


def test_deletions_are_committed_in_a_repository_with_sha_256(
    long_ids: tuple[Workspace, Repository],
) -> None:
    workspace, repository = long_ids
    ScriptedClient(workspace, "alice", repository.folder).bash("rm b.txt; echo six >> a.txt")
    commit(workspace, "alice")
    assert status(repository.folder) == ""


def test_deletions_are_in_a_pull_request_of_a_repository_with_sha_256(
    long_ids: tuple[Workspace, Repository],
) -> None:
    workspace, repository = long_ids
    ScriptedClient(workspace, "alice", repository.folder).bash("echo six >> a.txt")
    plan = plan_pull_request(workspace)
    assert list_files(repository, plan.content) == list_all(repository)


def test_an_interrupted_landing_in_a_repository_with_sha_256_is_finished(
    long_ids: tuple[Workspace, Repository],
) -> None:
    workspace, repository = long_ids
    work = Tree(repository, "work")
    before, head = repository.git("rev-parse", "main"), work.commit(b__txt=None, a__txt="new\n")
    decided = LandingRecord("work", "decided", "main", before, head)
    workspace.landings.record(DANA, decided)
    repository.git("update-ref", "refs/heads/main", head, before)
    (repository.folder / "b.txt").unlink()
    workspace.landings.resume()
    assert texts_in(repository.folder) == {"a.txt": "new\n"}
    assert status(repository.folder) == ""


def test_a_commit_onto_another_name_of_a_branch_moves_the_branch(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.git("symbolic-ref", "refs/heads/master", "refs/heads/main")
    repository.git("symbolic-ref", "HEAD", "refs/heads/master")
    alice.bash("echo six >> a.txt")
    commit(kept, "alice")
    assert repository.git("symbolic-ref", "refs/heads/master") == "refs/heads/main"
    assert repository.git("show", "main:a.txt") == f"{TEXT}six"
    assert status(repository.folder) == ""


def test_a_choice_is_written_in_a_folder_with_the_name_of_a_landing(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "land.example")
    repository.commit(a__txt=TEXT)
    with Workspace.open(repository.root, agents=["alice", "bob"]) as workspace:
        assert workspace.keep()
        alice, bob = (ScriptedClient(workspace, each, repository.folder) for each in ("alice", "bob"))
        bob.read("a.txt")
        alice.write("a.txt", "by alice\n")
        with pytest.raises(Refused):
            bob.write("a.txt", "by bob\n")
        (tree,) = workspace.trees.all()
        assert resolve(workspace, tree.path("a.txt"), "by both\n")["success"]
    assert repository.read("a.txt") == "by both\n"


# Reverts


@pytest.mark.parametrize("command", ["rm b.txt; mkdir b.txt; echo x > b.txt/x", "rm -r d; echo x > d"])
def test_a_file_in_the_place_of_a_folder_is_reverted_and_back(
    kept: Workspace, repository: Repository, alice: ScriptedClient, command: str
) -> None:
    repository.commit(**{"d/e/f": "f\n"})
    kept.trees.refresh_all()
    before = texts_in(repository.folder)
    alice.bash(f"{command}; echo x > zzz")
    changed = texts_in(repository.folder)
    dana = kept.tools_for_human("dana")
    found = dana.dispatch_tool_call("revert_work", {"agents": ["alice"]})
    assert found["success"], found
    assert texts_in(repository.folder) == before
    assert dana.dispatch_tool_call("revert_work", {"undo": found["revert_id"]})["success"]
    assert texts_in(repository.folder) == changed


@pytest.mark.parametrize("before", [b"text\n", b"\0before", None])
def test_a_binary_file_is_reverted_and_back(
    kept: Workspace, repository: Repository, alice: ScriptedClient, before: bytes | None
) -> None:
    place = repository.folder / "logo.png"
    if before is not None:
        place.write_bytes(before)
        repository.commit()
        kept.trees.refresh_all()
    alice.bash("printf '\\0after' > logo.png")
    dana = kept.tools_for_human("dana")
    found = dana.dispatch_tool_call("revert_work", {"agents": ["alice"]})
    assert (place.read_bytes() if place.exists() else None) == before
    assert dana.dispatch_tool_call("revert_work", {"undo": found["revert_id"]})["success"]
    assert place.read_bytes() == b"\0after"
    assert kept.verify() == []


def test_a_binary_file_that_an_agent_deleted_comes_back(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    place = repository.folder / "logo.png"
    place.write_bytes(b"\0before")
    place.chmod(0o755)
    repository.commit()
    kept.trees.refresh_all()
    alice.bash("rm logo.png")
    kept.tools_for_human("dana").dispatch_tool_call("revert_work", {"agents": ["alice"]})
    assert place.read_bytes() == b"\0before"
    assert status(repository.folder) == ""


def test_a_file_that_cannot_be_written_keeps_no_other_from_its_revert(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("rm a.txt; echo x > b.txt; echo x > new.txt")
    repository.write("a.txt/by_hand.txt", "by hand\n")
    found = kept.tools_for_human("dana").dispatch_tool_call("revert_work", {"agents": ["alice"]})
    assert (found["success"], found["error"]) == (False, "revert_unfinished")
    assert texts_in(repository.folder) == {"a.txt/by_hand.txt": "by hand\n", "b.txt": "b\n"}
    shutil.rmtree(repository.folder / "a.txt")
    kept.reverts.finish_all()
    assert texts_in(repository.folder) == {"a.txt": TEXT, "b.txt": "b\n"}
