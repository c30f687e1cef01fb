"""Shared fixtures for tests of commands: English, and the workspace of a team at work."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom_cli.main import LANGUAGE_VARIABLE


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LANGUAGE_VARIABLE, raising=False)


@pytest.fixture
def team(root: Path, workspace: Workspace) -> str:
    """A closed workspace with a conflict, a handoff, a refusal and private files."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    write(alice, "one", 0)
    write(alice, "two", 1)
    refused(bob, "collab_write", filepath="plan.md", content="late", message="m", expected_version=1)
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    ok(bob, "save_to_my_workspace", filename="notes/a.md", content="mine", message="kept")
    refused(bob, "save_to_my_workspace", filename="../x", content="")
    workspace.close()
    return str(root)


def write(toolbox: Toolbox, text: str, expected: int) -> None:
    ok(toolbox, "collab_write", filepath="plan.md", content=text, message="m", expected_version=expected)
