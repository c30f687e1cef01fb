"""Fixtures for the tests of TASKS: two tasks, each with its own folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tasking import Team, machine_sandbox
from watchroom import Agent, Workspace


@pytest.fixture
def team(tmp_path: Path, root: Path) -> Iterator[Team]:
    with Workspace.open(root, sandbox=machine_sandbox()) as workspace:
        folders = [tmp_path / "one", tmp_path / "other"]
        for agent, folder in zip(("alice", "bob"), folders, strict=True):
            task = workspace.tasks.submit("human:dana", "Build something.", folder)
            workspace.register([Agent(agent, task=task.id)])
        yield Team(workspace, workspace.tools("alice"), workspace.tools("bob"), *folders)
