"""Externally edited files are committed, merged or reverted from the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tui.conflict_steps import commits, on_disk
from tui.driver import dashboard
from tui.team import BASE, CURRENT, PLAN, opens_merge, write
from watchroom import Toolbox, Workspace


@pytest.fixture
def by_hand(root: Path, workspace: Workspace, alice: Toolbox) -> Callable[[str | None], None]:
    """Return a function that edits plan.md externally. None deletes it."""
    write(alice, BASE, 0)
    file = root / "collaborative/current" / PLAN

    def change(text: str | None) -> None:
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
        workspace.scan()

    return change


async def test_an_edit_made_by_hand_becomes_a_version(
    root: Path, workspace: Workspace, by_hand: Callable[[str | None], None]
) -> None:
    by_hand(BASE + "by hand\n")
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.sees("incoming · outside", "all decided")
        await commits(user)
        await user.is_told("is now version 2")
        assert on_disk(root) == BASE + "by hand\n"
        await user.has_taken_in(workspace)
        assert user.model.needs == ()
        assert workspace.scan() == []
        assert workspace.verify() == []


async def test_an_edit_made_by_hand_is_merged_with_a_newer_version(
    root: Path, workspace: Workspace, alice: Toolbox, by_hand: Callable[[str | None], None]
) -> None:
    by_hand(BASE.replace("last", "last, by hand"))
    write(alice, BASE.replace("first", "first, said alice"), 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await commits(user)
        await user.is_told("is now version 3")
        assert on_disk(root) == BASE.replace("last", "last, by hand").replace("first", "first, said alice")


@pytest.mark.parametrize("text", ["by hand\n", None], ids=["edited", "deleted"])
async def test_an_externally_edited_file_is_reverted(
    root: Path, workspace: Workspace, by_hand: Callable[[str | None], None], text: str | None
) -> None:
    by_hand(text)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("R")
        await user.is_asked("Revert the external edit of plan.md to version 1")
        await user.press("enter")
        await user.is_told("is reverted")
        assert on_disk(root) == BASE
        await user.has_taken_in(workspace)
        assert user.model.needs == ()
        assert workspace.scan() == []


async def test_a_deletion_by_hand_cannot_be_committed(
    workspace: Workspace, by_hand: Callable[[str | None], None]
) -> None:
    by_hand(None)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.sees("deleted externally; R restores it")
        await user.press("w")
        await user.is_told("Shared files cannot be deleted: R restores it")


async def test_a_file_edited_again_is_not_reverted(
    root: Path, workspace: Workspace, by_hand: Callable[[str | None], None]
) -> None:
    by_hand("once\n")
    async with dashboard(workspace) as user:
        await opens_merge(user)
        (root / "collaborative/current" / PLAN).write_text("twice\n", encoding="utf-8")
        await user.press("R")
        await user.is_asked("Revert the external edit of plan.md to version 1")
        await user.press("enter")
        await user.is_told("there is a newer external edit")
        assert on_disk(root) == "twice\n"
        assert user.place == "merge"


async def test_a_binary_edit_is_never_committed_as_an_empty_file(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, BASE, 0)
    (root / "collaborative/current" / PLAN).write_bytes(b"\xff\0")
    write(alice, CURRENT, 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.sees("not text; R reverts it")
        await user.press("w")
        await user.is_told("is not text, or is too long")
        await user.press("R")
        await user.is_asked("Revert the external edit of plan.md to version 2")
        await user.press("enter")
        await user.is_told("is reverted")
        assert on_disk(root) == CURRENT
