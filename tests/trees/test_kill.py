"""The process that keeps the workspace is killed in the middle of a call, of a barrier or of a commit: nothing is
lost or recorded twice, and git's index and HEAD are whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from effort import rounds, seed
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.features.trees.rows import BASELINE, REPO

PROGRAM = """
import os, signal, sys
from itertools import pairwise
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from trees.tree_client import ScriptedClient
from watchroom import Workspace
folder, moment = Path(sys.argv[2]), sys.argv[3]
workspace = Workspace.open(folder / ".git" / "watchroom", agents=["alice"])
assert workspace.keep()
alice = ScriptedClient(workspace, "alice", folder)
call, given = alice.begin_write("a.txt", "by alice\\n")
if moment == "checked":
    os.kill(os.getpid(), signal.SIGKILL)
(folder / "a.txt").write_text(given["content"])
if moment == "written":
    os.kill(os.getpid(), signal.SIGKILL)
commit = workspace.journal.append
def killed(*arguments, **more):
    if moment == "committed":
        commit(*arguments, **more)
    os.kill(os.getpid(), signal.SIGKILL)
workspace.journal.append = killed
workspace.trees.release(lambda holder: True)
workspace.trees.refresh_all()
"""


@pytest.mark.parametrize("moment", ["checked", "written", "recording", "committed"])
def test_nothing_is_lost_or_recorded_twice(repository: Repository, moment: str) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tests), str(repository.folder), moment],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    for _ in range(2):
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            workspace.trees.refresh_all()
            (tree,) = workspace.trees.all()
            found = workspace.journal.versions(REPO, tree.path("a.txt"))
            texts = [text for _, text in found]
            before = "one\ntwo\nthree\nfour\nfive\n"
            assert texts == ([] if moment == "checked" else [before, "by alice\n"])
            assert workspace.verify() == []


COMMITTED = 30  # of the files that the barriers see, those that git knows

BARRIERS = """
import sys
from itertools import pairwise
from pathlib import Path
from watchroom import Workspace
folder = Path(sys.argv[1])
with Workspace.open(folder / ".git" / "watchroom", agents=["alice"]) as workspace:
    assert workspace.keep()
    workspace.trees.refresh_all()
    print("ready", flush=True)
    for round in range(10_000):
        for number in range(60):
            (folder / f"f{number}.txt").write_text(f"{round} of {number}\\n")
        workspace.trees.refresh_all()
"""


@pytest.mark.real
def test_a_barrier_that_is_killed_leaves_rows_that_the_next_one_completes(repository: Repository) -> None:
    random = Random(seed(1))
    for number in range(COMMITTED):
        repository.write(f"f{number}.txt", f"{number}\n")
    repository.commit()
    for _ in range(rounds(12, 500)):
        command = [sys.executable, "-c", BARRIERS, str(repository.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(random.random() * 0.5)
            process.kill()
        check_rows(repository)


def check_rows(repository: Repository) -> None:
    """Check that the newest rows are the disk, and that no version equals the one before."""
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        (tree,) = workspace.trees.all()
        for number in range(60):
            found = workspace.journal.versions(REPO, tree.path(f"f{number}.txt"), limit=100_000)
            texts = [text for _, text in found]
            committed = number < COMMITTED
            if not texts:  # killed before it changed this file
                assert (repository.folder / f"f{number}.txt").exists() == committed
                assert not committed or repository.read(f"f{number}.txt") == f"{number}\n"
                continue
            assert texts[-1] == repository.read(f"f{number}.txt")
            assert all(one != other for one, other in pairwise(texts))
            assert [row.tool for row, _ in found].count(BASELINE) == committed
        assert workspace.verify() == []


COMMITS = """
import os, signal, sys
from itertools import pairwise
from pathlib import Path
from watchroom import Workspace
from watchroom.features.trees import git_writes
from watchroom.kernel.call_context import CallContext
folder, last = Path(sys.argv[1]), int(sys.argv[2])
steps = 0
def counted(function):
    def call(*arguments, **more):
        global steps
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return function(*arguments, **more)
    return call
with Workspace.open(folder / ".git" / "watchroom") as workspace:
    assert workspace.keep()
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    git_writes.run_git = counted(git_writes.run_git)
    for name in ("link", "replace", "unlink"):
        setattr(git_writes.os, name, counted(getattr(os, name)))
    workspace.agent_commits.commit(CallContext("human:pat"), tree.git, ["alice"], "work")
"""


@pytest.mark.real
def test_a_commit_that_is_killed_at_any_step_is_made_or_not(repository: Repository) -> None:
    tests = Path(__file__).parent.parent
    before = repository.git("rev-parse", "HEAD")
    repository.write("b.txt", "staged\n")
    repository.git("add", "b.txt")
    subprocess.run([sys.executable, "-c", EDIT, str(tests), str(repository.folder)], timeout=60, check=True)
    made: set[bool] = set()
    for step in range(1000):
        command = [sys.executable, "-c", COMMITS, str(repository.folder), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            workspace.trees.refresh_all()
            (tree,) = workspace.trees.all()
            assert not (repository.folder / ".git" / "index.lock").exists()
            is_made = repository.git("rev-parse", "HEAD") != before
            made.add(is_made)
            repository.git("fsck", "--strict")
            assert repository.git("diff", "--cached", "--name-only") == "b.txt", step
            assert repository.git("diff", "--name-only") == ("" if is_made else "a.txt"), step
            assert repository.git("show", "HEAD:a.txt").startswith("ONE" if is_made else "one")
            left = workspace.agent_commits.plan(tree.git, ["alice"]).files
            assert [each.path for each in left] == ([] if is_made else ["a.txt"]), step
            assert workspace.verify() == []
        if is_made:
            # The next commit is killed at a later step.
            repository.git("reset", "-q", "--soft", before)
            repository.git("reset", "-q", "a.txt")
        if done.returncode == 0:
            break
    assert made == {False, True}


EDIT = """
import sys
from itertools import pairwise
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from trees.tree_client import ScriptedClient
from watchroom import Workspace
folder = Path(sys.argv[2])
with Workspace.open(folder / ".git" / "watchroom", agents=["alice"]) as workspace:
    assert workspace.keep()
    workspace.trees.refresh_all()
    alice = ScriptedClient(workspace, "alice", folder)
    alice.read("a.txt")
    assert alice.edit("a.txt", "one", "ONE")
"""
