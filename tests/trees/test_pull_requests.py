"""Branches with one commit per author of a working tree, and pull requests of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from effort import seeds
from trees.git_repo import git, git_bytes, make_repository, write
from trees.recorded_tree import PERSON, RecordedTree
from trees.test_commits import AGENTS, TEN, play
from watchroom import Workspace
from watchroom.errors import NothingToCommit
from watchroom.features.trees.pull_requests import PullRequestOptions, PullRequestPlan
from watchroom.features.trees.rows import REPO, repo_path
from watchroom.kernel.call_context import CallContext
from watchroom.texts import catalogue

TEXTS: Final = catalogue("en")
DANA: Final = CallContext("human:dana")


# The law


def make(workspace: Workspace, tree: RecordedTree) -> tuple[PullRequestPlan, str]:
    """Make a branch with the work since the branch ``base``. Return the plan and the branch's commit."""
    requests = workspace.pull_requests
    plan = requests.plan(tree.tree, PullRequestOptions("base"), TEXTS)
    return plan, requests.open(DANA, tree.tree, plan, TEXTS, is_pushed=False).commit


def show(folder: Path, commit: str) -> dict[str, set[bytes]]:
    """Return the lines of each file of a commit, without their line ends."""
    names = git(folder, "ls-tree", "-r", "--name-only", commit).split("\n")
    return {name: {*git_bytes(folder, "show", f"{commit}:{name}").splitlines()} for name in names if name}


def count_foreign(tree: RecordedTree, base: str, commit: str) -> int:
    """Return the number of lines that commits bring which their authors have not written. A file that was
    binary is the work of its later authors."""
    found, folder = 0, tree.folder
    for each in git(folder, "rev-list", "--reverse", f"{base}..{commit}").split():
        before, after = show(folder, f"{each}~"), show(folder, each)
        message = git(folder, "show", "--no-patch", "--format=%B", each)
        for name, lines in after.items():
            rows = tree.store.journal.history(REPO, repo_path(tree.id, name))
            if any("sha256" in row.detail for row in rows):
                continue
            for line in {line for line in lines - before.get(name, set()) if b" " in line}:
                author = line.split()[0].decode()
                named = "people" if author == PERSON else f"Watchroom-Agent: {author}\n"
                found += named not in f"{message}\n"
    return found


@pytest.mark.parametrize("seed", seeds(12, 1000))
def test_the_last_commit_has_the_content_of_the_tree(seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as place, Workspace.open(Path(place) / "team") as workspace:
        files = {"one": TEN, "two.txt": b"1\n2\n3", "dir/crlf": TEN.replace(b"\n", b"\r\n")}
        folder = make_repository(Path(place) / "r", files, autocrlf="false")
        git(folder, "config", "core.autocrlf", random.choice(("false", "input", "true")))
        git(folder, "branch", "base")
        tree = RecordedTree(workspace, folder)
        if random.random() < 0.3:
            write(folder, "early", b"early\n")
            git(folder, "add", "early")
            git(folder, "commit", "--quiet", "--message=early")
        for _ in range(random.randint(1, 3)):
            play(random, tree)
            if random.random() < 0.5:
                with suppress(NothingToCommit):
                    tree.commit(*random.choice((AGENTS, AGENTS[:1], ())))
        before = git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD", "base")
        wanted = tree.full_tree()
        if wanted == git(folder, "rev-parse", "base^{tree}"):
            return
        plan, commit = make(workspace, tree)
        assert git(folder, "rev-parse", f"{commit}^{{tree}}") == wanted == plan.content
        assert git(folder, "merge-base", "base", commit) == git(folder, "rev-parse", "base")
        assert (git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD", "base")) == before
        assert len(plan.commits) <= len(AGENTS) + 1
        assert count_foreign(tree, "base", commit) == 0
        git(folder, "fsck", "--strict")
