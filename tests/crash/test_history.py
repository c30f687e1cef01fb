"""Files that follow behind commits are written, whatever kept them from it: an earlier process that died, a full disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calls import ok
from watchroom import Workspace

VERSIONS = 80


def test_a_history_left_behind_by_an_earlier_process_with_our_number_is_written(root: Path) -> None:
    """In a container, the first process has the same number at every start."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        for version in range(VERSIONS):
            ok(
                alice,
                "collab_write",
                filepath="plan.md",
                content=str(version),
                message="m",
                expected_version=version,
            )
    history = root / "collaborative/.versions/plan.md/history.json"
    whole = json.loads(history.read_text(encoding="utf-8"))
    assert len(whole) == VERSIONS
    history.unlink()
    digest = hashlib.sha256(b"plan.md").hexdigest()[:32]
    marker = root / ".watchroom/behind" / f"{os.getpid():x}.1-{digest}"
    marker.parent.mkdir()
    marker.write_text("plan.md", encoding="utf-8")
    Workspace.open(root, scan=False).close()
    assert json.loads(history.read_text(encoding="utf-8")) == whole
    assert not marker.exists()


def test_files_that_follow_behind_are_written_when_the_disk_has_space_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file, is_full = os.open, False

    def open_unless_full(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if is_full and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return open_file(path, flags, mode, dir_fd=dir_fd)

    # Nothing follows by itself.
    monkeypatch.setattr("watchroom.kernel.checkout.materializer.DERIVED_SECONDS", 3600.0)
    monkeypatch.setattr(os, "open", open_unless_full)
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice = workspace.tools("alice")
        for n in range(3):
            ok(alice, "collab_write", filepath="plan.md", content=f"{n}", message="m", expected_version=n)
        ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1,2", message="m")
        is_full = True
        workspace.flush()
        assert not (root / "collaborative/.versions/plan.md/v1.txt").exists()
        is_full = False
    with Workspace.open(root) as workspace:
        assert (root / "collaborative/.versions/plan.md/v1.txt").read_text() == "0"
        assert workspace.verify() == []


def test_a_clock_that_steps_takes_nothing_from_a_process_that_writes(root: Path) -> None:
    scratch = root / ".watchroom/tmp"
    with Workspace.open(root, agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        for n in range(2):
            ok(alice, "collab_write", filepath="plan.md", content=f"{n}", message="m", expected_version=n)
        own = [each.name for each in scratch.iterdir()]
        assert own
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        (scratch / f"w{ended.pid:x}-1").write_text("left behind")
        for each in scratch.iterdir():
            os.utime(each, (0, 0))
        Workspace.open(root).close()
        assert [each.name for each in scratch.iterdir()] == own
