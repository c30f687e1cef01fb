"""A team whose process is killed again and again: the task is done all the same, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from cli.running import as_typed
from effort import rounds
from evidence import all_rows
from tasking import on_disk
from watchroom import Workspace, validation
from watchroom.model import MESSAGE, SPAWN

KILLS = rounds(4, 6)
MOST_LINES = 4
SEED = int(os.environ.get("WATCHROOM_SEED", "7"))


def killed_after(command: list[str], lines: int) -> subprocess.CompletedProcess[str] | None:
    """Let it tell so many lines, then kill it; how it ended where that was sooner."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        told = [line for _, line in zip(range(lines), process.stderr, strict=False)]
        if len(told) == lines:
            process.send_signal(signal.SIGKILL)
            return None
        out = process.stdout.read()
    return subprocess.CompletedProcess(command, process.returncode, out, "".join(told))


def test_a_team_that_is_killed_again_and_again_delivers(tmp_path: Path) -> None:
    folder, root = tmp_path / "app", tmp_path / "team"
    with Workspace.open(root) as workspace:
        if workspace.commands.sandbox.best is None:
            pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    print(f"WATCHROOM_SEED={SEED}")
    dice = random.Random(SEED)
    given = ["--team", str(root), "--headless"]
    command = as_typed("task", "Build a calculator.", "--workspace", str(folder), "--simulate", *given)
    # The first two lines only say where everything is.
    done = killed_after(command, 2 + dice.randint(1, MOST_LINES))
    kills = 1
    while done is None:
        lines = 2 + dice.randint(1, MOST_LINES) if kills < KILLS else 10_000
        done = killed_after(as_typed("task", *given), lines)
        kills += 1
    assert done.returncode == 0, done.stderr
    assert kills == KILLS + 1
    task = json.loads(done.stdout)["task"]
    with Workspace.open(root, create=False) as workspace:
        assert workspace.verify() == []
        rows = all_rows(workspace.journal)
        made = Counter((row.actor, row.message) for row in rows if row.tool == SPAWN)
        said = Counter((row.actor, row.path, row.message) for row in rows if row.tool == MESSAGE)
        assert max(made.values()) == 1, made
        assert max(said.values()) == 1, said
        heads = workspace.journal.heads("file", f"{task}/")
        kept = {head.path.partition("/")[2]: head.sha256 for head in heads if not head.deleted}
        assert kept == {path: validation.sha256(data) for path, data in on_disk(folder).items()}
        again = {head.path.partition("/")[2] for head in workspace.journal.heads("file") if head.version != 1}
        assert again == {"calculator/evaluate.py", "calculator/__init__.py"}, (
            "each was written twice on purpose"
        )
