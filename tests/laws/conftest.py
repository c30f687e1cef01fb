"""What the tests of edits made by hand share: one file of each zone."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from watchroom import Toolbox


@pytest.fixture
def notes(root: Path, alice: Toolbox) -> Path:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="first")
    return root / "agents/alice/notes.md"


@pytest.fixture
def plan(root: Path, alice: Toolbox) -> Path:
    ok(alice, "collab_write", filepath="plan.md", content="first", message="m")
    return root / "collaborative/current/plan.md"


@pytest.fixture
def data(root: Path, alice: Toolbox) -> Path:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="first", message="m")
    return root / "handoff/alice_to_bob/data.csv"
