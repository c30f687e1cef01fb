"""Where working trees land: branches in several trees or odd states, and checks that change the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_landing import DANA, TEXT, Tree, everything, land, status, texts
from watchroom import Workspace
from watchroom.errors import GitBusy, InvalidTarget, TargetChanged, TreeGone
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_merge import GitMerger


@pytest.fixture
def work(repository: Repository) -> Tree:
    return Tree(repository, "work")


# The target


@pytest.mark.parametrize("into", ["main~1", "main^0", "main@{0}", "refs/heads/main", "HEAD", "ma*", ""])
def test_only_a_branch_is_a_target(kept: Workspace, repository: Repository, work: Tree, into: str) -> None:
    repository.commit(b__txt="more\n")
    work.commit(new__txt="new\n")
    before = everything(repository, work)
    if into:
        with pytest.raises(InvalidTarget):
            land(kept, work, into)
        assert everything(repository, work) == before


def test_a_branch_in_another_tree_moves_with_its_files(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    release = Tree(repository, "release")
    head = work.commit(new__txt="new\n")
    assert land(kept, work, "release").state == "landed"
    assert git(release.folder, "rev-parse", "HEAD") == head
    assert texts(release.folder) == texts(work.folder)
    assert (status(release.folder), "new.txt" in texts(repository.folder)) == ("", False)


@pytest.mark.parametrize(("head", "into"), [("master", "main"), ("main", "master"), ("master", None)])
def test_a_branch_moves_with_its_files_by_another_name(
    kept: Workspace, repository: Repository, work: Tree, head: str, into: str | None
) -> None:
    repository.git("symbolic-ref", "refs/heads/master", "refs/heads/main")
    repository.git("symbolic-ref", "HEAD", f"refs/heads/{head}")
    commit = work.commit(new__txt="new\n")
    assert land(kept, work, into).state == "landed"
    assert repository.git("rev-parse", "main") == commit
    assert repository.git("symbolic-ref", "refs/heads/master") == "refs/heads/main"
    assert (texts(repository.folder), status(repository.folder)) == (texts(work.folder), "")


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_branch_that_is_no_longer_checked_out_is_not_moved(
    repository: Repository, work: Tree, is_moved: bool
) -> None:
    """A person switches the branch after a landing has found the tree."""
    before, after = repository.git("rev-parse", "main"), work.commit(new__txt="new\n")
    repository.git("switch", "--quiet", "-c", "other")
    if is_moved:
        repository.git("update-ref", "refs/heads/main", after)
    state = everything(repository)
    tree = GitTree.find(str(repository.folder))
    assert tree is not None
    with pytest.raises(GitBusy):
        GitMerger(tree).move_checked_out("main", before, after)
    assert everything(repository) == state


def test_a_branch_that_two_trees_have_checked_out_is_no_target(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    release = Tree(repository, "release")
    second = repository.folder.parent / "second"
    repository.git("worktree", "add", "--quiet", "--force", str(second), "release")
    work.commit(new__txt="new\n")
    before = everything(repository, work, release), status(second)
    with pytest.raises(InvalidTarget, match="several working trees"):
        land(kept, work, "release")
    assert (everything(repository, work, release), status(second)) == before


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_branch_in_a_tree_whose_folder_is_gone_is_no_target(
    kept: Workspace, repository: Repository, work: Tree, is_locked: bool
) -> None:
    release = Tree(repository, "release")
    aside = release.folder.with_name("aside")
    if is_locked:
        repository.git("worktree", "lock", str(release.folder))
    release.folder.rename(aside)
    work.commit(new__txt="new\n")
    before = repository.git("for-each-ref")
    with pytest.raises(InvalidTarget, match="release"):
        land(kept, work, "release")
    assert repository.git("for-each-ref") == before
    aside.rename(release.folder)
    assert status(release.folder) == ""
    assert land(kept, work, "release").state == "landed"


@pytest.mark.parametrize("operation", ["rebase", "bisect"])
def test_a_branch_during_an_operation_of_git_is_no_target(
    kept: Workspace, repository: Repository, work: Tree, operation: str
) -> None:
    release = Tree(repository, "release")
    release.commit(a__txt="release\n")
    release.commit(a__txt="release again\n")
    repository.commit(a__txt="main\n")
    work.commit(new__txt="new\n")
    if operation == "rebase":
        with pytest.raises(AssertionError):
            git(release.folder, "rebase", "main")
    else:
        git(release.folder, "bisect", "start", "HEAD", "HEAD~2")
    before = everything(repository, work, release)
    with pytest.raises(InvalidTarget, match="Finish or abort"):
        land(kept, work, "release")
    assert everything(repository, work, release) == before


def test_a_tree_without_an_index_gets_the_files(kept: Workspace, repository: Repository, work: Tree) -> None:
    empty = repository.folder.parent / "empty"
    repository.git("worktree", "add", "--quiet", "--no-checkout", "-b", "empty", str(empty))
    work.commit(new__txt="new\n")
    before = repository.git("for-each-ref"), texts(empty)
    with pytest.raises(TargetChanged):
        land(kept, work, "empty")
    assert (repository.git("for-each-ref"), texts(empty)) == before


def test_the_branch_of_a_main_tree_that_cannot_be_found_is_no_target(
    repository: Repository, work: Tree, tmp_path: Path
) -> None:
    """The git folder is elsewhere, as that of a submodule."""
    repository.git("init", "--quiet", "--separate-git-dir", str(tmp_path / "elsewhere.git"))
    work.commit(new__txt="new\n")
    repository.git("branch", "release")
    before = repository.git("for-each-ref")
    with Workspace.open(tmp_path / "elsewhere.git" / "watchroom") as workspace:
        assert workspace.keep()
        with pytest.raises(InvalidTarget, match="main working tree"):
            land(workspace, work, "main")
        assert repository.git("for-each-ref") == before
        assert land(workspace, work, "release").state == "landed"
    assert status(repository.folder) == ""


def test_a_tree_of_a_bare_repository_lands(repository: Repository, tmp_path: Path) -> None:
    bare, folder = tmp_path / "bare.git", tmp_path / "linked"
    repository.git("clone", "--quiet", "--bare", str(repository.folder), str(bare))
    git(bare, "worktree", "add", "--quiet", "-b", "linked", str(folder))
    (folder / "new.txt").write_text("new\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    with Workspace.open(bare / "watchroom") as workspace:
        assert workspace.keep()
        (tree,) = workspace.trees.all()
        with pytest.raises(InvalidTarget, match="no branch"):
            workspace.landings.land(DANA, tree)
        assert workspace.landings.land(DANA, tree, "main").state == "landed"
    assert git(bare, "rev-parse", "main") == git(folder, "rev-parse", "HEAD")


# Checks


def test_a_check_that_moves_the_branch_each_time_lands_nothing(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    work.commit(a__txt=TEXT.replace("one", "ONE"))
    check = ["git", "-C", str(repository.folder), "commit", "--quiet", "--allow-empty", "-m", "other"]
    record = land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert record.state == "moved"
    assert repository.read("a.txt") == TEXT
    assert (repository.git("log", "-1", "--format=%s"), status(repository.folder)) == ("other", "")


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_what_a_check_writes_into_the_target_is_in_the_way(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path, name: str
) -> None:
    work.commit(a__txt=TEXT + "six\n", new__txt="new\n")
    check = ["sh", "-c", f"echo by the check > {repository.folder / name}"]
    refs = repository.git("for-each-ref", "refs/heads")
    with pytest.raises(TargetChanged, match=name):
        land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert repository.git("for-each-ref", "refs/heads") == refs
    assert repository.read(name) == "by the check\n"


def test_a_check_that_removes_the_tree_lands_nothing(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    work.commit(a__txt=TEXT + "six\n")
    before = texts(repository.folder), repository.git("for-each-ref")
    check = ["git", "-C", str(repository.folder), "worktree", "remove", "--force", str(work.folder)]
    with pytest.raises(TreeGone):
        land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert (texts(repository.folder), repository.git("for-each-ref")) == before
    assert status(repository.folder) == ""


@pytest.mark.real
def test_a_check_may_print_a_lot(kept: Workspace, repository: Repository, work: Tree, tmp_path: Path) -> None:
    work.commit(a__txt=TEXT + "six\n")
    check = ["sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' 'x'; echo end"]
    record = land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert record.state == "landed"
    assert len(record.output) <= 64 * 1024
    assert record.output.endswith("xend\n")


# Two landings at once

LANDING: Final = """
import sys
from watchroom import Workspace
from watchroom.errors import WatchroomError
from watchroom.kernel.call_context import CallContext
root, cache, folder = sys.argv[1:]
with Workspace.open(root) as workspace:
    tree = next(each for each in workspace.trees.all() if each.git.folder == folder)
    sys.stdin.readline()
    try:
        check = ["sleep", "0.3"]
        print(workspace.landings.land(CallContext("human:dana"), tree, check=check, cache=cache).state)
    except WatchroomError as error:
        print(error.message())
"""


def test_two_landings_at_the_same_moment(kept: Workspace, repository: Repository, tmp_path: Path) -> None:
    trees = [Tree(repository, name) for name in ("first", "second")]
    for tree in trees:
        tree.commit(**{f"{tree.name}__txt": "new\n"})
    running = [
        subprocess.Popen(
            [sys.executable, "-c", LANDING, str(repository.root), str(tmp_path / "cache"), str(each.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in trees
    ]
    said = []
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    for each in running:
        said.append(each.communicate(timeout=60)[0].strip())
        assert each.returncode == 0
    landed = [tree for tree, state in zip(trees, said, strict=True) if state == "landed"]
    refused = [state for state in said if state != "landed"]
    assert landed
    assert all("another landing is running" in each for each in refused)
    assert {f"{each.name}.txt" for each in landed} == texts(repository.folder).keys() - {"a.txt", "b.txt"}
    assert status(repository.folder) == ""
    git(repository.folder, "fsck", "--strict")
