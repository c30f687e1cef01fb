"""What the tests of reverts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tasking import machine_sandbox
from watchroom import Agent, Workspace


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Workspace]:
    """Two agents on one task."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kept.py").write_text("print(1)\n")
    with Workspace.open(tmp_path / "team", sandbox=machine_sandbox()) as workspace:
        task = workspace.tasks.submit("human:ann", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id), Agent("bob", task=task.id)])
        yield workspace
