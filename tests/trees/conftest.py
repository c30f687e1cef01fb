"""A git repository with a workspace, and clients that work in it with their own tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the person who runs the tests away from git."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    made.commit(a__txt="one\ntwo\nthree\nfour\nfive\n", b__txt="b\n")
    return made


@pytest.fixture
def kept(repository: Repository) -> Iterator[Workspace]:
    """The workspace in the repository, which this process keeps. What is there is known."""
    with Workspace.open(repository.root, agents=["alice", "bob", "carol"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        yield workspace


@pytest.fixture
def alice(kept: Workspace, repository: Repository) -> ScriptedClient:
    return ScriptedClient(kept, "alice", repository.folder)


@pytest.fixture
def bob(kept: Workspace, repository: Repository) -> ScriptedClient:
    return ScriptedClient(kept, "bob", repository.folder)
