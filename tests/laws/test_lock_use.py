"""How often the workspace's lock is held, and for how much."""

from __future__ import annotations

from calls import ok
from watchroom import Toolbox, Workspace


def test_a_write_holds_the_lock_once_for_one_row(workspace: Workspace, alice: Toolbox) -> None:
    workspace.flush()
    before = workspace.lock_use
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    after = workspace.lock_use
    assert (after.holds - before.holds, after.rows - before.rows) == (1, 1)
