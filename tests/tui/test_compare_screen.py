"""The comparison of two moments: changed paths, their authors and sizes, and the difference on enter."""

from __future__ import annotations

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, User, dashboard
from watchroom import Toolbox, Workspace
from watchroom_tui.context import RangeTarget


@pytest.fixture
def since(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> int:
    """The row after which two agents changed a file, and one was created."""
    ok(alice, "collab_write", filepath="plan.md", content="a\nb\n", message="m")
    row = workspace.journal.last_seq()
    ok(bob, "collab_write", filepath="plan.md", content="a\nB\n", message="m", expected_version=1)
    ok(alice, "collab_write", filepath="plan.md", content="a\nB\nc\n", message="m", expected_version=2)
    ok(alice, "save_to_my_workspace", filename="own.md", content="x\n")
    return row


async def opens(user: User, since: int) -> None:
    await user.goes_to("2", "agents")
    await user.app.navigator.go_to("compare", RangeTarget(since, user.model.seq))
    await user.until(lambda: user.place == "compare", "the comparison")


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["narrow", "middle"])
async def test_changed_paths_are_listed_with_authors_and_sizes_and_enter_shows_the_difference(
    workspace: Workspace, since: int, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await opens(user, since)
        await user.sees("collab/plan.md", "+2 −1", "private/alice/own.md", "+1 −0")
        await user.press("enter")
        await user.sees("− b", "+ B", "+ c")
        await user.press("escape")
        assert user.pane == "changed"
        await user.press("escape")
        await user.until(lambda: user.place == "agents", "the screen beneath")


async def test_paths_with_equal_counts_are_listed_each_by_its_own_name(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    row = workspace.journal.last_seq()
    for toolbox, path in ((alice, "a.md"), (alice, "b.md"), (bob, "c.md")):
        ok(toolbox, "collab_write", filepath=path, content="x\n", message="m")
    async with dashboard(workspace) as user:
        await opens(user, row)
        for path in ("collab/a.md", "collab/b.md", "collab/c.md"):
            await user.sees(path)


async def test_later_rows_do_not_change_a_comparison_of_two_moments(
    workspace: Workspace, bob: Toolbox, since: int
) -> None:
    async with dashboard(workspace) as user:
        await opens(user, since)
        await user.sees("collab/plan.md")
        ok(bob, "collab_write", filepath="late.md", content="x", message="m")
        last = workspace.journal.last_seq()
        await user.until(lambda: user.model.seq >= last, "the new row")
        assert not user.shows("late.md")


async def test_equal_moments_are_reported(workspace: Workspace, since: int) -> None:
    async with dashboard(workspace) as user:
        await opens(user, user.model.seq)
        await user.sees("No differences between these two moments.")
