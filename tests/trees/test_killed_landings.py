"""Landings of several trees with a check, killed at each step: each landing is finished or never happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_landing import DANA, TEXT, Tree, everything, land, recorder, status, texts
from watchroom import Workspace
from watchroom.errors import InvalidTarget
from watchroom.features.trees.landing import LandingRecord

PARTS: Final = 8
PROGRAM: Final = """
import os, signal, sys
from watchroom import Workspace
from watchroom.features.trees import git_merge, git_writes, trials
from watchroom.kernel.call_context import CallContext
root, cache, last, *folders = sys.argv[1:]
steps = 0
def counted(function):
    def call(*arguments, **more):
        global steps
        if steps == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return function(*arguments, **more)
    return call
with Workspace.open(root) as workspace:
    assert workspace.keep()
    trees = {each.git.folder: each for each in workspace.trees.all()}
    for module in (git_merge, git_writes, trials):
        module.run_git = counted(module.run_git)
    trials.run_contained = counted(trials.run_contained)
    for name in ("link", "replace", "unlink"):
        setattr(os, name, counted(getattr(os, name)))
    workspace.journal.append = counted(workspace.journal.append)
    for folder in folders:
        check = ["sh", "-c", "cat *.txt"]
        print(workspace.landings.land(CallContext("human:dana"), trees[folder], check=check, cache=cache).state)
"""


def run_landings(
    repository: Repository, trees: list[Tree], cache: Path, last: int
) -> subprocess.CompletedProcess[str]:
    arguments = [str(repository.root), str(cache), str(last), *(str(each.folder) for each in trees)]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.real
@pytest.mark.parametrize("part", range(PARTS))
def test_landings_with_checks_that_are_killed_at_any_step(
    repository: Repository, tmp_path: Path, part: int
) -> None:
    trees = [Tree(repository, name) for name in ("first", "second")]
    cache, is_done = tmp_path / "cache", False
    for last in range(part, 1000, PARTS):
        for number, tree in enumerate(trees):
            git(tree.folder, "merge", "--quiet", "--ff-only", "main")
            tree.commit(**{f"{tree.name}__txt": f"{last}\n", f"new{last}-{number}__txt": "new\n"})
        repository.commit(b__txt=f"{last}\n")
        before = everything(repository, *trees)
        done = run_landings(repository, trees, cache, last)
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            workspace.landings.resume()
            landed = [
                each for each in trees if (repository.folder / f"new{last}-{trees.index(each)}.txt").exists()
            ]
            assert landed == trees[: len(landed)], "they land in this order"
            assert status(repository.folder) == ""
            if not landed:
                repository.git("worktree", "prune")
                assert everything(repository, *trees) == before
            for each in trees:
                head = git(each.folder, "rev-parse", "HEAD")
                has_work = not repository.git("rev-list", f"main..{head}")
                assert has_work == (each in landed)
                assert land(workspace, each).state == ("up_to_date" if has_work else "landed")
            assert {each: repository.read(f"{each}.txt") for each in ("first", "second")} == dict.fromkeys(
                ("first", "second"), f"{last}\n"
            )
            assert status(repository.folder) == ""
            assert workspace.verify() == []
        left = [
            each for each in os.listdir(repository.folder / ".git") if "lock" in each or "-index-" in each
        ]
        assert left == []
        git(repository.folder, "fsck", "--strict")
        if done.returncode == 0:
            is_done = True
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert is_done, "no landing ended"


@pytest.fixture
def work(repository: Repository) -> Tree:
    return Tree(repository, "work")


def decide(workspace: Workspace, repository: Repository, tree: Tree, head: str) -> None:
    """Move the branch as a landing does that is killed before it writes files."""
    before = repository.git("rev-parse", "main")
    decided = LandingRecord(recorder(workspace, tree).id, "decided", "main", before, head)
    workspace.flush()
    workspace.landings.record(DANA, decided)
    repository.git("update-ref", "refs/heads/main", head, before)


@pytest.mark.real
def test_a_large_file_that_was_written_in_part_is_finished(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    large = os.urandom(1024) * 1024 * 50
    (work.folder / "large.bin").write_bytes(large)
    decide(kept, repository, work, work.commit())
    (repository.folder / "large.bin").write_bytes(large[: 30 * 1024 * 1024])
    kept.landings.resume()
    assert (repository.folder / "large.bin").read_bytes() == large
    assert status(repository.folder) == ""


@pytest.mark.parametrize("text", ["by hand\n", None])
@pytest.mark.parametrize("name", ["a.txt", "b.txt", "new.txt"])
def test_what_others_changed_after_the_decision_stays(
    kept: Workspace, repository: Repository, work: Tree, name: str, text: str | None
) -> None:
    decide(kept, repository, work, work.commit(a__txt=TEXT + "six\n", b__txt=None, new__txt="new\n"))
    if text is None:
        (repository.folder / name).unlink(missing_ok=True)
    else:
        repository.write(name, text)
    kept.landings.resume()
    expected = texts(work.folder) | ({name: text} if text is not None else {})
    assert texts(repository.folder) == expected
    assert {line[3:] for line in status(repository.folder).splitlines()} == ({name} if text else set())
    assert land(kept, work).state == "up_to_date"


def test_another_branch_that_was_checked_out_after_the_decision_stays(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.git("branch", "other")
    decide(kept, repository, work, work.commit(a__txt=TEXT + "six\n"))
    repository.git("symbolic-ref", "HEAD", "refs/heads/other")
    kept.landings.resume()
    assert (repository.read("a.txt"), status(repository.folder)) == (TEXT, "")
    assert land(kept, work, "main").state == "up_to_date"


def test_files_follow_after_an_operation_in_the_target_has_ended(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    decide(kept, repository, work, work.commit(a__txt=TEXT + "six\n"))
    repository.git("bisect", "start")
    with pytest.raises(InvalidTarget, match="Finish or abort"):
        kept.landings.resume()
    assert repository.read("a.txt") == TEXT
    repository.git("bisect", "reset")
    kept.landings.resume()
    assert (repository.read("a.txt"), status(repository.folder)) == (TEXT + "six\n", "")


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_target_that_is_gone_after_the_decision_stops_no_other_landing(
    kept: Workspace, repository: Repository, work: Tree, is_moved: bool
) -> None:
    release = Tree(repository, "release")
    head, before = work.commit(a__txt=TEXT + "six\n"), repository.git("rev-parse", "release")
    tree = recorder(kept, work).id
    kept.flush()
    kept.landings.record(DANA, LandingRecord(tree, "decided", "release", before, head))
    if is_moved:
        repository.git("update-ref", "refs/heads/release", head, before)
    release.folder.rename(release.folder.with_name("aside"))
    assert land(kept, work).state == "landed"
    assert repository.git("rev-parse", "release") == (head if is_moved else before)


# Others commit meanwhile

MEANWHILE: Final = """
import subprocess, sys
from watchroom import Workspace
from watchroom.errors import GitBusy
from watchroom.features.trees import git_merge, git_writes
from watchroom.kernel.call_context import CallContext
root, main, last, folder = sys.argv[1:]
steps = 0
def counted(function):
    def call(*arguments, **more):
        global steps
        if steps == int(last):
            with open(f"{main}/b.txt", "a") as file:
                file.write("by hand\\\\n")
            done = subprocess.run(["git", "commit", "--quiet", "--all", "-m", "by hand"], cwd=main)
            print(f"commit {done.returncode}", flush=True)
        steps += 1
        return function(*arguments, **more)
    return call
with Workspace.open(root) as workspace:
    assert workspace.keep()
    tree = next(each for each in workspace.trees.all() if each.git.folder == folder)
    for module in (git_merge, git_writes):
        module.run_git = counted(module.run_git)
    try:
        print(workspace.landings.land(CallContext("human:dana"), tree).state)
    except GitBusy as error:
        print(error.values["rule"])
"""


@pytest.mark.real
def test_a_commit_into_the_target_at_any_step_of_a_landing(repository: Repository, work: Tree) -> None:
    for last in range(100):
        repository.commit(a__txt=TEXT)
        git(work.folder, "merge", "--quiet", "--ff-only", "main")
        work.commit(a__txt=f"{TEXT}{last}\n", new__txt=f"{last}\n")
        arguments = [repository.root, repository.folder, last, work.folder]
        done = subprocess.run(
            [sys.executable, "-c", MEANWHILE, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        *commit, state = done.stdout.split("\n")[:-1]
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            workspace.landings.resume()
            if repository.read("b.txt").count("by hand") != repository.git("show", "main:b.txt").count(
                "by hand"
            ):
                assert commit != ["commit 0"], "the index was locked"
                repository.git("commit", "--quiet", "--all", "--message", "by hand")
            assert status(repository.folder) == ""
            has_landed = repository.read("a.txt") != TEXT
            assert has_landed == (not repository.git("rev-list", "main..work")), (last, state)
            assert land(workspace, work).state == ("up_to_date" if has_landed else "landed")
        assert (repository.read("a.txt"), repository.read("new.txt")) == (f"{TEXT}{last}\n", f"{last}\n")
        assert repository.read("b.txt").count("by hand") == last + len(commit)
        assert status(repository.folder) == ""
        if not commit:
            assert last > 10
            break
    git(repository.folder, "fsck", "--strict")
