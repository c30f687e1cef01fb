"""What the tests of bad input share: a workspace with something at stake."""

from __future__ import annotations

import pytest
from calls import ok
from watchroom import Toolbox, Workspace

pytest.register_assert_rewrite("hostile.calling")


@pytest.fixture
def settled(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> Workspace:
    """A workspace in which something is at stake in every zone."""
    for toolbox in (alice, bob):
        ok(toolbox, "save_to_my_workspace", filename="notes.md", content="mine")
    ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1,2", message="m")
    ok(bob, "collab_write", filepath="plan.md", content="plan", message="m")
    workspace.flush()
    return workspace
