"""The process that keeps the workspace is killed in the middle of a call: nothing is lost or recorded twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.features.trees.rows import REPO

PROGRAM = """
import os, signal, sys
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
