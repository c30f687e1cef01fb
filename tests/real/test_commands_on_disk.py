"""Commands as their own processes on a disk: killed at a random moment, and the workspace opened again."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from effort import rounds, seed
from real.programs import installed
from watchroom import Workspace

pytestmark = pytest.mark.real

KILLS: Final = rounds(12, 60)
TEAM_KILLS: Final = rounds(3, 12)
PATIENCE: Final = 60


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed("watchroom"), *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def write_call(root: Path, number: int) -> list[str]:
    given = {
        "filepath": f"note{number}.md",
        "content": f"text {number}\n",
        "message": "m",
        "expected_version": 0,
    }
    return [installed("watchroom"), "call", str(root), "alice", "collab_write", json.dumps(given)]


def acknowledged(output: str) -> bool:
    """Whether a call has printed its whole answer, and the answer is success."""
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        return False
    return bool(answer["success"])


def test_files_of_the_real_tier_are_on_a_disk(tmp_path: Path) -> None:
    device = os.stat(tmp_path).st_dev
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    kinds = [mount[mount.index("-") + 1] for mount in mounts if _device(mount[2]) == device]
    assert not {"tmpfs", "ramfs"} & set(kinds), "set TMPDIR, or --basetemp, to a folder on a disk"


def _device(numbers: str) -> int:
    major, minor = map(int, numbers.split(":"))
    return os.makedev(major, minor)


def test_a_call_that_printed_success_is_kept_whenever_calls_are_killed(root: Path) -> None:
    assert run("init", str(root), "--agent", "alice").returncode == 0
    began = time.monotonic()
    assert acknowledged(
        subprocess.run(write_call(root, 0), capture_output=True, text=True, check=True).stdout
    )
    usual = time.monotonic() - began
    kept = {0}
    chance = random.Random(seed(1))
    for number in range(1, KILLS + 1):
        with subprocess.Popen(write_call(root, number), stdout=subprocess.PIPE, text=True) as process:
            try:
                process.wait(chance.uniform(0, 1.3 * usual))
            except subprocess.TimeoutExpired:
                process.kill()
            assert process.stdout is not None
            if acknowledged(process.stdout.read()):
                kept.add(number)
        done = run("call", str(root), "alice", "collab_list")
        assert done.returncode == 0, done.stdout + done.stderr
    verified = run("verify", str(root))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with Workspace.open(root, create=False) as workspace:
        for number in kept:
            head = workspace.journal.head("collab", f"note{number}.md")
            assert head is not None
            assert workspace.journal.content(head.seq) == f"text {number}\n"
            assert (root / f"collaborative/current/note{number}.md").read_text() == f"text {number}\n"


def test_a_team_that_is_killed_leaves_a_workspace_that_verifies_after_repair(root: Path) -> None:
    chance = random.Random(seed(2))
    for _ in range(TEAM_KILLS):
        command = [installed("watchroom"), "demo", str(root), "--headless", "--for", "3600"]
        before = rows_of(root)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as team:
            target = before + chance.randint(20, 120)
            made, deadline = before, time.monotonic() + PATIENCE
            while (rows := rows_of(root)) < target:
                assert team.poll() is None, team.communicate()
                if rows > made:
                    made, deadline = rows, time.monotonic() + PATIENCE
                assert time.monotonic() < deadline, "the agents make no rows"
                time.sleep(0.05)
            team.kill()
        repaired = run("verify", str(root), "--repair")
        assert repaired.returncode == 0, repaired.stdout + repaired.stderr
        verified = run("verify", str(root))
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert rows_of(root) >= target


def rows_of(root: Path) -> int:
    """Return the number of the last row that any process has committed."""
    journal = root / ".watchroom/journal.db"
    if not journal.exists():
        return 0
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
        try:
            (last,) = connection.execute("SELECT max(seq) FROM rows").fetchone()
        except sqlite3.OperationalError:  # its tables are not there yet
            return 0
    return last or 0
