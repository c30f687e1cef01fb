"""Work that is committed in a working tree lands in a branch, and in the tree that has this branch checked out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from cli.running import Captured, printed, run
from effort import seeds
from trees.git_repo import git
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.errors import GitBusy, InvalidTarget, TargetChanged, UncommittedWork
from watchroom.features.trees.landing import LandingRecord, read_landing
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.features.trees.rows import LAND, REPO
from watchroom.features.trees.trials import trials_folder
from watchroom.kernel.call_context import CallContext
from watchroom.model import MESSAGE

DANA: Final = CallContext("human:dana")
TEXT: Final = "one\ntwo\nthree\nfour\nfive\n"


class Tree:
    """A linked working tree beside the repository, on a branch of its name."""

    def __init__(self, repository: Repository, name: str) -> None:
        self.name = name
        self.folder = repository.folder.parent / name
        repository.git("worktree", "add", "--quiet", "-b", name, str(self.folder))

    def commit(self, **files: str | None) -> str:
        """Commit files whose names have ``__`` for a dot. None deletes one. Return the commit's id."""
        for name, text in files.items():
            place = self.folder / name.replace("__", ".")
            if text is None:
                place.unlink()
            else:
                place.write_bytes(text.encode())
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message", f"work of {self.name}")
        return git(self.folder, "rev-parse", "HEAD")


@pytest.fixture
def work(repository: Repository) -> Tree:
    return Tree(repository, "work")


def recorder(workspace: Workspace, tree: Tree) -> TreeRecorder:
    return next(each for each in workspace.trees.all() if each.git.folder == str(tree.folder))


def land(workspace: Workspace, tree: Tree, into: str | None = None, **more: Any) -> LandingRecord:
    return workspace.landings.land(DANA, recorder(workspace, tree), into, **more)


def conflict_path(workspace: Workspace, tree: Tree, name: str) -> str:
    return f"land.{recorder(workspace, tree).id}/{name}"


def resolve(workspace: Workspace, path: str, text: str) -> Mapping[str, Any]:
    (conflict,) = workspace.journal.refused(REPO, path, limit=1)
    head = workspace.journal.head(REPO, path)
    assert head is not None
    return workspace.tools_for_human("dana").dispatch_tool_call(
        "resolve_conflict",
        {
            "filepath": path,
            "content": text,
            "expected_version": head.version,
            "conflicts": [conflict.seq],
            "message": "both",
        },
    )


def status(folder: Path) -> str:
    return git(folder, "status", "--porcelain", "--untracked-files=all")


def texts(folder: Path) -> dict[str, str]:
    """Return the files in ``folder``, without git's."""
    found = (each for each in folder.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(folder)): each.read_bytes().decode() for each in found}


def everything(repository: Repository, *trees: Tree) -> list[object]:
    """Return the refs, the files and the staged content of all trees."""
    folders = [repository.folder, *(each.folder for each in trees)]
    state: list[object] = [repository.git("for-each-ref")]
    return state + [(texts(each), git(each, "ls-files", "--stage"), status(each)) for each in folders]


# A landing


def test_a_landing_moves_the_branch_and_the_files_of_its_tree(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    head = work.commit(a__txt=TEXT + "six\n", new__txt="new\n", b__txt=None)
    record = land(kept, work)
    assert (record.state, record.into, record.after) == ("landed", "main", head)
    assert repository.git("rev-parse", "main") == head
    assert texts(repository.folder) == {"a.txt": TEXT + "six\n", "new.txt": "new\n"}
    assert status(repository.folder) == ""
    assert land(kept, work).state == "up_to_date"


def test_both_sides_are_merged(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt=TEXT.replace("one", "ONE"))
    repository.write("a.txt", TEXT.replace("five", "FIVE"))
    repository.commit()
    before = repository.git("rev-parse", "main")
    record = land(kept, work)
    assert record.state == "landed"
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert status(repository.folder) == ""
    assert repository.git("rev-parse", "main^1", "main^2").split() == [
        before,
        git(work.folder, "rev-parse", "HEAD"),
    ]
    assert "Merge branch 'work' into main" in repository.git("log", "-1", "--format=%B", "main")


def test_changes_of_others_in_the_target_stay(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt=TEXT + "six\n")
    repository.write("b.txt", "by hand\n")
    repository.write("untracked.txt", "by hand\n")
    repository.git("add", "b.txt")
    assert land(kept, work).state == "landed"
    assert (repository.read("a.txt"), repository.read("b.txt")) == (TEXT + "six\n", "by hand\n")
    assert status(repository.folder) == "M  b.txt\n?? untracked.txt"


def test_a_branch_that_is_not_checked_out_is_only_moved(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.git("branch", "release")
    head = work.commit(a__txt=TEXT + "six\n")
    assert land(kept, work, "release").state == "landed"
    assert repository.git("rev-parse", "release") == head
    assert repository.read("a.txt") == TEXT


def test_trees_land_one_after_the_other(kept: Workspace, repository: Repository) -> None:
    trees = [Tree(repository, name) for name in ("first", "second", "third")]
    for number, tree in enumerate(trees):
        tree.commit(**{f"new{number}__txt": "new\n", "a__txt": TEXT.replace(TEXT.split()[number * 2], "new")})
    assert [land(kept, each).state for each in trees] == ["landed"] * 3
    assert repository.read("a.txt") == "new\ntwo\nnew\nfour\nnew\n"
    assert {"new0.txt", "new1.txt", "new2.txt"} <= texts(repository.folder).keys()


# What is in the way


@pytest.mark.parametrize("name", ["a.txt", "untracked.txt"])
def test_uncommitted_work_does_not_land(
    kept: Workspace, repository: Repository, work: Tree, name: str
) -> None:
    work.commit(new__txt="new\n")
    (work.folder / name).write_text("not committed\n")
    before = everything(repository, work)
    with pytest.raises(UncommittedWork, match=name):
        land(kept, work)
    assert everything(repository, work) == before


@pytest.mark.parametrize("is_staged", [False, True])
def test_uncommitted_changes_of_the_target_are_in_the_way(
    kept: Workspace, repository: Repository, work: Tree, is_staged: bool
) -> None:
    work.commit(a__txt=TEXT + "six\n", new__txt="new\n")
    repository.write("a.txt", "by hand\n")
    repository.write("new.txt", "by hand\n")
    if is_staged:
        repository.git("add", "a.txt")
    before = everything(repository, work)
    with pytest.raises(TargetChanged, match=r"a\.txt, new\.txt"):
        land(kept, work)
    assert everything(repository, work) == before


def test_a_rebase_in_the_tree_is_in_the_way(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt="work\n")
    repository.write("a.txt", "main\n")
    repository.commit()
    with pytest.raises(AssertionError):
        git(work.folder, "rebase", "main")
    with pytest.raises(GitBusy):
        land(kept, work)


def test_an_index_that_is_locked_is_in_the_way(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt="work\n")
    before = everything(repository, work)
    (repository.folder / ".git" / "index.lock").touch()
    with pytest.raises(GitBusy):
        land(kept, work)
    (repository.folder / ".git" / "index.lock").unlink()
    assert everything(repository, work) == before
    assert land(kept, work).state == "landed"


@pytest.mark.parametrize("into", ["work", "nowhere", "-x"])
def test_a_branch_that_cannot_be_the_target(kept: Workspace, work: Tree, into: str) -> None:
    work.commit(a__txt="work\n")
    with pytest.raises(InvalidTarget):
        land(kept, work, into)


def test_a_detached_tree_lands_its_commit(kept: Workspace, repository: Repository, work: Tree) -> None:
    git(work.folder, "checkout", "--quiet", "--detach")
    head = work.commit(a__txt="work\n")
    assert land(kept, work).after == head


def test_a_main_tree_without_a_branch_needs_a_name(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    work.commit(a__txt="work\n")
    repository.git("checkout", "--quiet", "--detach")
    with pytest.raises(InvalidTarget):
        land(kept, work)
    assert land(kept, work, "main").state == "landed"
    assert repository.read("a.txt") == TEXT, "the main tree is not on this branch"


# Checks


def test_a_check_sees_the_merge(kept: Workspace, repository: Repository, work: Tree, tmp_path: Path) -> None:
    work.commit(a__txt=TEXT.replace("one", "ONE"))
    repository.write("a.txt", TEXT.replace("five", "FIVE"))
    repository.commit()
    check = ["sh", "-c", "cat a.txt && git status --porcelain"]
    record = land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert (record.state, record.status) == ("landed", 0)
    assert record.output == "ONE\ntwo\nthree\nfour\nFIVE\n"


def test_a_failed_check_changes_nothing(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    work.commit(a__txt=TEXT + "six\n")
    before = everything(repository, work)
    check = ["sh", "-c", "echo 2 of 41 failed; exit 3"]
    record = land(kept, work, check=check, cache=str(tmp_path / "cache"))
    assert (record.state, record.status, record.output) == ("check_failed", 3, "2 of 41 failed\n")
    repository.git("worktree", "prune")
    assert everything(repository, work) == before


def test_a_copy_for_checks_is_no_tree_while_it_is_made(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    """A process that is killed after git has made the copy has not marked it."""
    head = work.commit(a__txt="work\n")
    cache = str(tmp_path / "cache")
    copy = Path(trials_folder(recorder(kept, work).git, cache)) / "0"
    repository.git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(copy), head)
    assert {each.git.folder for each in kept.trees.all()} == {str(repository.folder), str(work.folder)}
    assert len(kept.own_trees.list_trees()) == 2
    assert land(kept, work, check=["grep", "work", "a.txt"], cache=cache).state == "landed"


def test_a_branch_that_moves_during_the_check_is_merged_again(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    work.commit(a__txt=TEXT.replace("one", "ONE"))
    once = tmp_path / "once"
    change = f"git -C {repository.folder} commit --quiet --allow-empty -m other"
    check = ["sh", "-c", f"[ -e {once} ] || {{ touch {once}; {change}; }}"]
    assert land(kept, work, check=check, cache=str(tmp_path / "cache")).state == "landed"
    assert repository.git("log", "-1", "--format=%s", "main^1") == "other"


# Conflicts


def collide(repository: Repository, work: Tree) -> None:
    work.commit(a__txt=TEXT.replace("three", "by work"))
    repository.write("a.txt", TEXT.replace("three", "by main"))
    repository.commit()


def test_a_conflict_waits_for_a_person(kept: Workspace, repository: Repository, work: Tree) -> None:
    collide(repository, work)
    before = everything(repository, work)
    record = land(kept, work)
    assert (record.state, record.paths) == ("conflict", ("a.txt",))
    assert everything(repository, work) == before
    path = conflict_path(kept, work, "a.txt")
    versions = [text for _, text in kept.journal.versions(REPO, path)]
    assert versions == [TEXT, TEXT.replace("three", "by main")]
    (conflict,) = kept.journal.refused(REPO, path, limit=10)
    assert (conflict.base, kept.journal.content(conflict.seq)) == (1, TEXT.replace("three", "by work"))
    assert land(kept, work).state == "conflict"
    assert len(kept.journal.refused(REPO, path, limit=10)) == 1, "it is recorded once"


def test_a_settled_conflict_lands(kept: Workspace, repository: Repository, work: Tree) -> None:
    collide(repository, work)
    land(kept, work)
    assert resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))["success"]
    assert land(kept, work).state == "landed"
    assert repository.read("a.txt") == TEXT.replace("three", "by both")
    assert status(repository.folder) == ""


def test_a_dismissed_conflict_lands_without_the_lines_of_the_tree(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    collide(repository, work)
    work.commit(new__txt="new\n")
    land(kept, work)
    (conflict,) = kept.journal.refused(REPO, conflict_path(kept, work, "a.txt"), limit=1)
    kept.conflicts.dismiss(DANA, conflict.seq, "main is right")
    assert land(kept, work).state == "landed"
    assert repository.read("a.txt") == TEXT.replace("three", "by main")
    assert repository.read("new.txt") == "new\n"


def test_what_was_settled_is_kept_when_both_sides_go_on(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    collide(repository, work)
    land(kept, work)
    resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))
    work.commit(a__txt=TEXT.replace("three", "by work").replace("one", "ONE"))
    repository.write("a.txt", TEXT.replace("three", "by main").replace("five", "FIVE"))
    repository.commit()
    assert land(kept, work).state == "landed"
    assert repository.read("a.txt") == "ONE\ntwo\nby both\nfour\nFIVE\n"


def test_a_change_of_what_was_settled_is_a_new_conflict(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    collide(repository, work)
    land(kept, work)
    path = conflict_path(kept, work, "a.txt")
    resolve(kept, path, TEXT.replace("three", "by both"))
    repository.write("a.txt", TEXT.replace("three", "by main again"))
    repository.commit()
    assert land(kept, work).state == "conflict"
    (conflict,) = kept.journal.refused(REPO, path, limit=1)
    assert (conflict.base, conflict.detail["current"]) == (4, 5)


def test_what_was_settled_before_a_failed_check_is_settled_in_the_next_landing(
    kept: Workspace, repository: Repository, work: Tree, tmp_path: Path
) -> None:
    collide(repository, work)
    land(kept, work)
    resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))
    record = land(kept, work, check=["false"], cache=str(tmp_path / "cache"))
    assert (record.state, record.settled) == ("check_failed", ("a.txt",))
    record = land(kept, work)
    assert (record.state, record.settled) == ("landed", ("a.txt",))
    assert repository.read("a.txt") == TEXT.replace("three", "by both")
    newest = [row for row in kept.journal.rows(0, limit=1000) if row.tool == LAND and row.outcome == "ok"]
    assert read_landing(newest[-1]).settled == ("a.txt",)


def test_what_was_settled_for_one_tree_is_settled_for_another_with_the_same_lines(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    other = Tree(repository, "other")
    other.commit(a__txt=TEXT.replace("three", "by work").replace("one", "ONE"), new__txt="new\n")
    collide(repository, work)
    land(kept, work)
    resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))
    record = land(kept, other)
    assert (record.state, record.settled) == ("landed", ("a.txt",))
    assert repository.read("a.txt") == "ONE\ntwo\nby both\nfour\nfive\n"


def test_what_was_settled_for_one_tree_is_not_used_for_other_lines(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    other = Tree(repository, "other")
    other.commit(a__txt=TEXT.replace("three", "by other"))
    collide(repository, work)
    land(kept, work)
    resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))
    record = land(kept, other)
    assert (record.state, record.settled) == ("conflict", ())


def test_only_new_regions_of_a_file_are_left_to_settle(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    collide(repository, work)
    land(kept, work)
    path = conflict_path(kept, work, "a.txt")
    resolve(kept, path, TEXT.replace("three", "by both"))
    work.commit(a__txt=TEXT.replace("three", "by work").replace("one", "work"))
    repository.write("a.txt", TEXT.replace("three", "by main").replace("one", "main"))
    repository.commit()
    record = land(kept, work)
    assert (record.state, record.settled) == ("conflict", ("a.txt",))
    (conflict,) = kept.journal.refused(REPO, path, limit=1)
    head = kept.journal.head(REPO, path)
    assert head is not None
    assert [kept.journal.content(each.seq) for each in (head, conflict)] == [
        TEXT.replace("three", "by both").replace("one", side) for side in ("main", "work")
    ]
    resolve(kept, path, TEXT.replace("three", "by both").replace("one", "both"))
    assert land(kept, work).state == "landed"
    assert repository.read("a.txt") == TEXT.replace("three", "by both").replace("one", "both")


def test_a_decision_of_an_agent_does_not_settle(kept: Workspace, repository: Repository, work: Tree) -> None:
    collide(repository, work)
    land(kept, work)
    path = conflict_path(kept, work, "a.txt")
    (conflict,) = kept.journal.refused(REPO, path, limit=1)
    planted = CallContext("alice", "resolve_conflict").write(
        REPO, path, "planted\n", "settled", 2, {"resolves": [conflict.seq]}
    )
    kept.trees.write(planted)
    assert land(kept, work).state == "conflict"


@pytest.mark.parametrize("kind", ["deleted", "binary", "link"])
def test_what_has_no_lines_is_named(kept: Workspace, repository: Repository, work: Tree, kind: str) -> None:
    if kind == "link":
        (work.folder / "a.txt").unlink()
        (work.folder / "a.txt").symlink_to("b.txt")
        work.commit()
    else:
        work.commit(a__txt=None if kind == "deleted" else "\0work\n")
    repository.write("a.txt", "main\n")
    repository.commit()
    before = everything(repository, work)
    record = land(kept, work)
    assert (record.state, record.paths[0]) == ("conflict", "a.txt")
    assert everything(repository, work) == before


# Killed landings

PROGRAM: Final = """
import os, signal, sys
from watchroom import Workspace
from watchroom.features.trees import git_merge, git_writes
from watchroom.kernel.call_context import CallContext
root, folder, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = 0
def counted(function):
    def call(*arguments, **more):
        global steps
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return function(*arguments, **more)
    return call
with Workspace.open(root) as workspace:
    assert workspace.keep()
    tree = next(each for each in workspace.trees.all() if each.git.folder == folder)
    for module in (git_merge, git_writes):
        module.run_git = counted(module.run_git)
        for name in ("link", "replace", "unlink"):
            setattr(module.os, name, counted(getattr(os, name)))
    workspace.journal.append = counted(workspace.journal.append)
    print(workspace.landings.land(CallContext("human:dana"), tree).state)
"""


def run_landing(repository: Repository, work: Tree, last: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(repository.root), str(work.folder), str(last)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.real
def test_a_landing_that_is_killed_at_any_step_is_finished_or_never_happened(repository: Repository) -> None:
    work = Tree(repository, "work")
    for last in range(200):
        work.commit(a__txt=f"{TEXT}{last}\n", **{f"new{last}__txt": "new\n"})
        repository.write("b.txt", f"{last}\n")
        repository.commit()
        before = everything(repository, work)
        done = run_landing(repository, work, last)
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            workspace.landings.resume()
            newest = [row for row in workspace.journal.rows(0, limit=100_000) if row.tool == LAND]
            state = read_landing(newest[-1]).state if newest else "none"
            if repository.read("a.txt") != f"{TEXT}{last}\n":
                assert everything(repository, work) == before
                assert land(workspace, work).state == "landed"
            else:
                assert state == "landed"
            assert repository.read("a.txt") == f"{TEXT}{last}\n"
            assert status(repository.folder) == ""
            assert workspace.verify() == []
        git(repository.folder, "fsck", "--strict")
        if done.returncode == 0:
            assert last > 10, "it was killed at some steps"
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    else:
        pytest.fail("no landing ended")


@pytest.mark.real
def test_a_landing_whose_git_is_killed_while_it_writes_files_is_finished(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    head = work.commit(a__txt=TEXT + "six\n", b__txt=None, new__txt="1\n" * 1000)
    before = repository.git("rev-parse", "main")
    tree = recorder(kept, work)
    decided = LandingRecord(tree.id, "decided", "main", before, head)
    kept.flush()
    kept.landings.record(DANA, decided)
    repository.git("update-ref", "refs/heads/main", head, before)
    repository.write("new.txt", "1\n" * 10)
    (repository.folder / "b.txt").unlink()
    kept.landings.resume()
    assert texts(repository.folder) == texts(work.folder)
    assert status(repository.folder) == ""


@pytest.mark.parametrize("actor", ["alice", "human:dana"])
def test_a_row_that_was_not_written_by_a_landing_moves_no_branch(
    kept: Workspace, repository: Repository, work: Tree, actor: str
) -> None:
    """Agents decide nothing, and no row takes commits from a branch."""
    first = repository.git("rev-parse", "main")
    repository.write("b.txt", "more\n")
    repository.commit()
    ahead = work.commit(new__txt="new\n")
    now, tree = repository.git("rev-parse", "main"), recorder(kept, work).id
    decided = LandingRecord(tree, "decided", "main", now, first if actor == DANA.actor else ahead)
    for after in (decided.after, "--stdin", "0" * 40):
        kept.landings.record(CallContext(actor), decided._replace(after=after))
        kept.landings.resume()
    assert repository.git("rev-parse", "main") == now
    assert status(repository.folder) == ""


# Compared with git


def random_files(dice: Random, files: dict[str, list[str]], side: str, *, moves: bool = True) -> None:
    """Change some of ``files``, lists of lines. ``moves``: files can be moved."""
    for _ in range(dice.randint(1, 4)):
        name = dice.choice(sorted(files) or ["f0.txt"])
        kind = dice.random()
        if kind < 0.1 or not files:
            files[f"{side}{dice.randint(0, 3)}.txt"] = [f"{side} {n}" for n in range(dice.randint(1, 5))]
        elif kind < 0.15:
            del files[name]
        elif kind < 0.2 and moves:
            files[f"moved-{side}-{name}"] = files.pop(name)
        else:
            lines = files[name]
            at = dice.randrange(len(lines) + 1)
            lines[at : at + dice.randint(0, 1)] = [f"{side} {dice.randint(0, 9)}"]


def write_files(folder: Path, files: Mapping[str, Sequence[str]]) -> None:
    for each in folder.glob("*.txt"):
        if each.name not in files:
            each.unlink()
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def others(state: Sequence[object]) -> list[str]:
    """Return the refs in ``state`` except the target."""
    return [each for each in str(state[0]).splitlines() if not each.endswith("refs/heads/main")]


def settle_all(workspace: Workspace, tree: Tree, record: LandingRecord, clone: Path) -> bool:
    """Settle all conflicts with the same texts in Watchroom and in the merge of ``clone``. Return False if
    one has no lines."""
    if workspace.landings.plan(recorder(workspace, tree)).others:
        return False
    paths = {name: conflict_path(workspace, tree, name) for name in record.paths}
    for name, path in paths.items():
        text = f"settled {name} with {workspace.journal.last_seq()}\n"
        assert resolve(workspace, path, text)["success"]
        (clone / name).write_text(text)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "settled")
    return True


@pytest.mark.real
@pytest.mark.parametrize("number", seeds(12, 300))
def test_a_landed_tree_is_what_git_merges(tmp_path: Path, number: int) -> None:
    dice = Random(number)
    repository = Repository(tmp_path / "project")
    files = {f"f{n}.txt": [f"{n} line {line}" for line in range(12)] for n in range(4)}
    write_files(repository.folder, files)
    repository.commit()
    trees = [Tree(repository, name) for name in ("x", "y", "z")]
    sides = {each.name: {name: [*lines] for name, lines in files.items()} for each in trees}
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        for _ in range(6):
            tree = dice.choice(trees)
            random_files(dice, sides[tree.name], tree.name)
            write_files(tree.folder, sides[tree.name])
            git(tree.folder, "add", "--all")
            git(tree.folder, "commit", "--quiet", "--allow-empty", "--message", "work")
            land_as_git(workspace, repository, tree, trees, tmp_path / "git", dice.random() < 0.5)
        assert workspace.verify() == []
    git(repository.folder, "fsck", "--strict")


def land_as_git(
    workspace: Workspace,
    repository: Repository,
    tree: Tree,
    trees: Sequence[Tree],
    clone: Path,
    settles: bool,
) -> None:
    """Land ``tree``, and compare the result with that of ``git merge``. ``settles``: a person settles the
    conflicts that have lines, in both."""
    before = everything(repository, *trees)
    git(repository.folder, "clone", "--quiet", str(repository.folder), str(clone))
    try:
        head = git(tree.folder, "rev-parse", "HEAD")
        merge = ["git", "-C", str(clone), "merge", "--quiet", "--no-edit", head]
        done = subprocess.run(
            merge, env={**os.environ, "HOME": str(clone)}, capture_output=True, text=True, check=False
        )
        record = land(workspace, tree)
        if done.returncode and record.state == "conflict":
            assert everything(repository, *trees) == before
            if not settles or not settle_all(workspace, tree, record, clone):
                return
            record = land(workspace, tree)
        elif done.returncode:
            # What a person settled earlier counts again. Git knows nothing of it.
            assert record.state == "landed"
            return
        assert record.state in ("landed", "up_to_date")
        assert repository.git("rev-parse", "HEAD^{tree}") == git(clone, "rev-parse", "HEAD^{tree}")
        assert status(repository.folder) == ""
        after = everything(repository, *trees)
        assert after[2:] == before[2:], "other trees are as they were"
        assert others(after) == others(before), "other refs are as they were"
    finally:
        subprocess.run(["rm", "-rf", str(clone)], check=True)


# Messages


def told_of(client: ScriptedClient) -> str:
    """Return what the agent reads with its next call."""
    before = len(client.told)
    client.read("b.txt")
    return "\n".join(client.told[before:])


def land_by_tool(workspace: Workspace, tree: Tree, *check: str) -> str:
    arguments = {"tree": recorder(workspace, tree).id, "check": [*check]}
    result = workspace.tools_for_human("dana").dispatch_tool_call(LAND, arguments)
    return str(result["state"])


@pytest.fixture
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_cache")
def test_the_agents_of_a_tree_read_why_it_did_not_land(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    bob, alice = ScriptedClient(kept, "bob", work.folder), ScriptedClient(kept, "alice", repository.folder)
    work.commit(new__txt="new\n")
    check = ("sh", "-c", "seq 100; echo 2 of 41 failed; exit 3")
    assert land_by_tool(kept, work, *check) == "check_failed"
    told = told_of(bob)
    assert "Your working tree work did not land in main: the check failed" in told
    assert "(exit status 3): seq 100; echo 2 of 41 failed; exit 3." in told
    assert told.endswith("\n  100\n  2 of 41 failed")
    assert "\n  61\n" not in told, "only the end of the output"
    assert "did not land" not in told_of(alice)
    land_by_tool(kept, work, *check)
    assert "did not land" not in told_of(bob), "the same is told once"
    collide(repository, work)
    assert land_by_tool(kept, work) == "conflict"
    assert "these files conflict with it: a.txt. Nothing was changed." in told_of(bob)


@pytest.mark.usefixtures("_cache")
def test_the_agent_of_a_tree_whose_target_moves_each_time_reads_it(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    bob = ScriptedClient(kept, "bob", work.folder)
    work.commit(new__txt="new\n")
    change = f"git -C {repository.folder} commit --quiet --allow-empty -m other"
    assert land_by_tool(kept, work, "sh", "-c", change) == "moved"
    assert "main moved each time before the check had ended" in told_of(bob)


def test_all_agents_at_work_in_a_tree_read_that_it_did_not_land(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    clients = [ScriptedClient(kept, name, work.folder) for name in ("alice", "bob", "carol")]
    clients[0].hook("SessionEnd", reason="other")
    collide(repository, work)
    assert land_by_tool(kept, work) == "conflict"
    assert ["did not land" in told_of(each) for each in clients[1:]] == [True, True]
    sent = [row.path for row in kept.journal.rows(0, limit=1000) if row.tool == MESSAGE]
    assert sent == ["bob", "carol"], "the session of alice has ended"


def test_the_agents_read_that_a_tree_landed_after_it_had_not(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    bob = ScriptedClient(kept, "bob", work.folder)
    collide(repository, work)
    assert land_by_tool(kept, work) == "conflict"
    assert "did not land" in told_of(bob)
    resolve(kept, conflict_path(kept, work, "a.txt"), "settled\n")
    assert land_by_tool(kept, work) == "landed"
    assert "Your working tree work has now landed in main" in told_of(bob)
    work.commit(new__txt="new\n")
    assert land_by_tool(kept, work) == "landed"
    assert "has landed" not in told_of(bob)


def test_nobody_reads_of_a_tree_that_landed(kept: Workspace, work: Tree) -> None:
    bob = ScriptedClient(kept, "bob", work.folder)
    work.commit(new__txt="new\n")
    assert land_by_tool(kept, work) == "landed"
    assert told_of(bob) == ""


# The command


@pytest.fixture
def at_repository(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    Workspace.open(repository.root, agents=["alice"]).close()
    monkeypatch.chdir(repository.folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(repository.folder.parent / "cache"))
    return repository


def test_trees_land_in_the_given_order_and_one_with_a_conflict_stops_no_other(
    capsys: Captured, at_repository: Repository, work: Tree
) -> None:
    other = Tree(at_repository, "other")
    collide(at_repository, work)
    other.commit(new__txt="new\n")
    status_, out, said = run(capsys, "land", "work", "other")
    assert status_ == 1
    assert out.startswith("  a.txt\nother has landed in main: ")
    assert said == (
        "work conflicts with main. Nothing was changed. Settle these files in the dashboard, then land again:\n"
    )
    found = json.loads(run(capsys, "land", "work", "other", "--json")[1])
    assert [each["state"] for each in found] == ["conflict", "up_to_date"]


def test_a_landing_names_what_was_settled_before(
    capsys: Captured, at_repository: Repository, work: Tree
) -> None:
    collide(at_repository, work)
    run(capsys, "land", "work")
    with Workspace.open(at_repository.root) as workspace:
        resolve(workspace, conflict_path(workspace, work, "a.txt"), TEXT.replace("three", "by both"))
    assert printed(capsys, "land", "work").endswith("Reused earlier resolutions of conflicts: a.txt\n")


def test_a_failed_check_shows_its_output(capsys: Captured, at_repository: Repository, work: Tree) -> None:
    work.commit(a__txt="new\n")
    status_, out, said = run(capsys, "land", "work", "--check", "echo 2 failed; exit 3")
    assert (status_, out) == (1, "2 failed\n")
    assert "exit status 3" in said
    assert printed(capsys, "land", "work", "--check", "true").startswith("work has landed in main: ")


def test_the_check_of_the_settings_runs_unless_another_is_given(
    capsys: Captured, at_repository: Repository, work: Tree
) -> None:
    config = at_repository.root / ".watchroom" / "config.toml"
    config.write_text(config.read_text() + '\n[trees]\ncheck = "echo from the settings; exit 4"\n')
    work.commit(a__txt="new\n")
    assert run(capsys, "land", "work")[:2] == (1, "from the settings\n")
    with Workspace.open(at_repository.root) as workspace:
        tree = recorder(workspace, work).id
        own = ("/bin/sh", "-c", "echo from the settings; exit 4")
        assert [workspace.landings.find_check(each) for each in (tree, "other")] == [own, own]
    run(capsys, "land", "work", "--check", "exit 5")
    with Workspace.open(at_repository.root) as workspace:
        assert workspace.landings.find_check(tree) == ("/bin/sh", "-c", "exit 5"), "the last one of the tree"
        assert workspace.landings.find_check("other") == own
    assert printed(capsys, "land", "work", "--check", "").startswith("work has landed in main: ")


def test_a_refused_landing_says_what_to_do(capsys: Captured, at_repository: Repository, work: Tree) -> None:
    (work.folder / "new.txt").write_text("new\n")
    status_, out, said = run(capsys, "land", "work")
    assert (status_, out) == (1, "")
    assert "uncommitted changes: new.txt" in said
    assert "watchroom commit AGENT --here --tree work" in said


def test_an_agent_lands_nothing(
    capsys: Captured, at_repository: Repository, work: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.commit(a__txt="new\n")
    monkeypatch.setenv(AGENT_VARIABLE, "alice")
    status_, _, said = run(capsys, "land", "work")
    assert (status_, "alice" in said) == (1, True)
    assert at_repository.read("a.txt") == TEXT
