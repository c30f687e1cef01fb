"""A commit that has begun ends, whatever is pressed and wherever the person goes meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from tui.driving import dashboard
from tui.settling import DECIDED, commits, is_asked_for_a_message, on_disk
from tui.team import CURRENT, busy, collide, opens_merge, write
from watchroom import Toolbox, Workspace


async def test_a_commit_that_has_begun_ends_whatever_is_pressed_meanwhile(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("w", "d", "D", "R")
            assert desk.place == "merge"
        await desk.is_told("plan.md is version 3 now")
        assert on_disk(root) == DECIDED
        assert desk.place == "files"
        await desk.press("q")
        await desk.until(lambda: desk.app._exit, "the end")


async def test_quitting_does_not_ask_about_what_is_just_being_committed(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("q")
            await desk.until(lambda: desk.app._exit, "the end")
        await desk.until(lambda: on_disk(root) == DECIDED, "the commit")


@pytest.mark.parametrize("key", ["escape", "1"])
async def test_a_commit_that_has_begun_ends_though_its_merge_is_left(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, key: str
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press(key)
            await desk.until(lambda: desk.place != "merge", "another screen")
        await desk.is_told("plan.md is version 3 now: 1 from alice, 2 from bob. The conflict")
        assert on_disk(root) == DECIDED


async def test_a_commit_that_is_refused_after_its_merge_was_left_waits_there_with_what_was_decided(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        draft = await opens_merge(desk)
        await desk.press("c", "i", "w")
        await is_asked_for_a_message(desk)
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        with busy(workspace):
            await desk.press("enter")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("escape")
            await desk.until(lambda: desk.place == "files", "the files")
        await desk.is_told("Not committed")
        assert await opens_merge(desk) is draft
        await desk.sees("current v3 · alice", "all decided")
        await commits(desk)
        await desk.is_told("is version 4 now")


async def test_a_merge_that_was_left_and_opened_again_closes_when_its_commit_is_done(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        draft = await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("escape")
            await desk.until(lambda: desk.place == "files", "the files")
            assert await opens_merge(desk) is draft
        await desk.is_told("is version 3 now")
        await desk.until(lambda: desk.place == "files", "the files")


async def test_a_merge_closes_with_what_lies_over_it_when_its_commit_is_done(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("question_mark")
            await desk.until(lambda: desk.place == "HelpDialog", "the help")
        await desk.is_told("is version 3 now")
        assert desk.place == "HelpDialog"
        await desk.press("escape")
        await desk.until(lambda: desk.place == "files", "the files")
