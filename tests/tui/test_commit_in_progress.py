"""A started commit ends, whatever is pressed and wherever the person goes meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from tui.conflict_steps import DECIDED, commits, is_asked_for_a_message, on_disk
from tui.driver import dashboard
from tui.team import CURRENT, busy, collide, opens_merge, write
from watchroom import Toolbox, Workspace


async def test_a_commit_that_has_begun_ends_whatever_is_pressed_meanwhile(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        with busy(workspace):
            await commits(user, "c", "i")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press("w", "d", "D", "R")
            assert user.place == "merge"
        await user.is_told("plan.md is now version 3")
        assert on_disk(root) == DECIDED
        assert user.place == "files"
        await user.press("q")
        await user.until(lambda: user.app._exit, "the end")


async def test_quitting_does_not_ask_about_what_is_just_being_committed(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        with busy(workspace):
            await commits(user, "c", "i")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press("q")
            await user.until(lambda: user.app._exit, "the end")
        await user.until(lambda: on_disk(root) == DECIDED, "the commit")


@pytest.mark.parametrize("key", ["escape", "1"])
async def test_a_commit_that_has_begun_ends_though_its_merge_is_left(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, key: str
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        with busy(workspace):
            await commits(user, "c", "i")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press(key)
            await user.until(lambda: user.place != "merge", "another screen")
        await user.is_told("plan.md is now version 3: 1 from alice, 2 from bob. The conflict")
        assert on_disk(root) == DECIDED


async def test_a_commit_that_is_refused_after_its_merge_was_left_waits_there_with_what_was_decided(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("c", "i", "w")
        await is_asked_for_a_message(user)
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        with busy(workspace):
            await user.press("enter")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press("escape")
            await user.until(lambda: user.place == "files", "the files")
        await user.is_told("Not committed")
        assert await opens_merge(user) is draft
        await user.sees("current v3 · alice", "all decided")
        await commits(user)
        await user.is_told("is now version 4")


async def test_a_merge_that_was_left_and_opened_again_closes_when_its_commit_is_done(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        with busy(workspace):
            await commits(user, "c", "i")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press("escape")
            await user.until(lambda: user.place == "files", "the files")
            assert await opens_merge(user) is draft
        await user.is_told("is now version 3")
        await user.until(lambda: user.place == "files", "the files")


async def test_a_merge_closes_with_what_lies_over_it_when_its_commit_is_done(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        with busy(workspace):
            await commits(user, "c", "i")
            await user.until(lambda: user.place == "merge", "the merge")
            await user.press("question_mark")
            await user.until(lambda: user.place == "HelpDialog", "the help")
        await user.is_told("is now version 3")
        assert user.place == "HelpDialog"
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
