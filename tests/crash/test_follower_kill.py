"""A process that is killed between a row and the files that follow behind it: the next one lays them out."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok
from evidence import outside_rows
from watchroom import Toolbox, Workspace

VERSIONS = 5
PLAN_VERSIONS = "collaborative/.versions/plan.md"


def _write(alice: Toolbox) -> None:
    for version in range(VERSIONS):
        ok(
            alice,
            "collab_write",
            filepath="plan.md",
            content=str(version),
            message="m",
            expected_version=version,
        )
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1", message="m")
    ok(alice, "whiteboard_write", board="bottom-layer-alice", content="# Mine", message="m")


def _kill_after(root: Path, act: Callable[[Toolbox], None]) -> set[str]:
    """Have another process act, and killed at its last acknowledgement, while nothing can follow behind; returns
    the files that it left."""
    (ready, is_ready), (go, goes) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        try:
            workspace = Workspace.open(root, scan=False)
            os.write(is_ready, b"!")
            os.read(go, 1)
            act(workspace.tools("alice"))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.read(ready, 1)
    with (root / ".watchroom/behind.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(goes, b"!")
        os.waitpid(process, 0)
    for each in (ready, is_ready, go, goes):
        os.close(each)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scan", [True, False])
def test_what_follows_behind_a_commit_is_laid_out_by_the_next_process(root: Path, scan: bool) -> None:
    Workspace.open(root, agents=["alice", "bob"]).close()
    left = _kill_after(root, _write)
    assert "collaborative/current/plan.md" in left
    assert "whiteboards/bottom-layer-alice.md" in left
    assert f"{PLAN_VERSIONS}/v{VERSIONS}.txt" not in left
    with Workspace.open(root, scan=scan) as workspace:
        assert outside_rows(workspace) == []
        folder = root / PLAN_VERSIONS
        texts = [(folder / f"v{number}.txt").read_text() for number in range(1, VERSIONS + 1)]
        assert texts == [str(version) for version in range(VERSIONS)]
        assert len(json.loads((folder / "history.json").read_bytes())) == VERSIONS
        assert json.loads((root / "handoff/alice_to_bob/data.csv.meta.json").read_bytes())["version"] == 1
        assert (root / "whiteboard-history/bottom-layer-alice-v1.md").read_text() == "# Mine"
        assert workspace.verify() == []


def test_a_living_process_lays_out_what_a_dead_one_left(root: Path, workspace: Workspace) -> None:
    left = _kill_after(root, _write)
    assert f"{PLAN_VERSIONS}/v{VERSIONS}.txt" not in left
    workspace.flush()
    assert (root / PLAN_VERSIONS / f"v{VERSIONS}.txt").read_text() == str(VERSIONS - 1)
    assert workspace.verify() == []
