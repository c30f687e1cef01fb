"""A long history that a process of an earlier release left behind when it died is written by the next one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

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
