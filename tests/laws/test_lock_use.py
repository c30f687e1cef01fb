"""How often the workspace's lock is held, and for how much."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from watchroom import Toolbox, Workspace


def test_a_write_holds_the_lock_once_for_one_row(workspace: Workspace, alice: Toolbox) -> None:
    workspace.flush()
    before = workspace.append_statistics
    ok(alice, "save_to_my_workspace", filename="a.md", content="x")
    after = workspace.append_statistics
    assert (after.appends - before.appends, after.rows - before.rows) == (1, 1)


def test_others_get_their_turn_while_many_edits_by_hand_are_recorded(
    workspace: Workspace, root: Path
) -> None:
    for n in range(120):
        (root / "agents/alice" / f"{n}.md").write_text(str(n))
    before = workspace.append_statistics
    assert len(workspace.scan()) == 120
    after = workspace.append_statistics
    assert after.max_rows <= 50
    assert after.appends - before.appends >= 3


def test_verifying_what_is_whole_holds_nobody_off(workspace: Workspace, alice: Toolbox) -> None:
    for n in range(20):
        ok(alice, "collab_write", filepath=f"{n}.md", content=str(n), message="m")
        ok(alice, "handoff_file", to_agent="bob", filename=f"{n}.md", content=str(n), message="m")
    workspace.flush()
    before = workspace.append_statistics
    assert workspace.verify() == []
    assert workspace.append_statistics.appends == before.appends
