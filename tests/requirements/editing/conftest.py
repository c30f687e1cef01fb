"""What the tests of EDIT share: a team with a task, and one agent's sources of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from watchroom import Agent, Toolbox, Workspace


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Iterator[Workspace]:
    team = [Agent("alice", "strategy", "top"), Agent("bob", "strategy", "top")]
    with Workspace.open(root, agents=team) as opened:
        task = opened.tasks.submit("human:dana", "Build something.", tmp_path / "work")
        opened.register([Agent(each.id, each.role, each.layer, task=task.id) for each in team])
        yield opened


@pytest.fixture
def alice(workspace: Workspace) -> Toolbox:
    return workspace.tools("alice")


@pytest.fixture
def bob(workspace: Workspace) -> Toolbox:
    return workspace.tools("bob")
