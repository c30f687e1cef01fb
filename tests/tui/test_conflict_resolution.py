"""A conflict ends with a commit or a dismissal, from the keyboard, and in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from tui.conflict_steps import DECIDED, commits, is_asked_for_a_message, on_disk, stale_write_of_one_line
from tui.driver import MIDDLE, NARROW, WIDE, dashboard
from tui.team import CURRENT, PLAN, collide, has_opened_merge, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_a_conflict_with_two_regions_is_resolved_in_five_key_presses(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, size: tuple[int, int]
) -> None:
    refused = collide(alice, bob)
    async with dashboard(workspace, size=size) as user:
        await opens_merge(user)  # one key: !
        await user.press("c", "i", "w")
        await is_asked_for_a_message(user)
        await user.sees("+ last, said bob")
        await user.press("enter")
        await user.is_told("plan.md is now version 3: 1 from alice, 2 from bob")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert (head.version, head.base, head.actor, head.tool) == (3, 2, "human:dana", "resolve_conflict")
        assert head.message == "Merge: 1 from alice, 2 from bob"
        assert head.detail == {"resolves": [refused]}
        assert workspace.journal.content(head.seq) == on_disk(root) == DECIDED
        await user.has_taken_in(workspace)
        assert user.model.needs == ()
        assert user.place == "files"
        await user.until(lambda: user.cursor("versions").seq == head.seq, "the version that was committed")
        assert workspace.verify() == []


async def test_the_message_can_be_written(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("A", "i", "w")
        await is_asked_for_a_message(user)
        await user.press("ctrl+u")
        await user.press("enter")
        await user.is_told("in a few words")
        await user.type("bob is right")
        await user.press("enter")
        await user.is_told("is now version 3")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert head.message == "bob is right"


async def test_nothing_is_committed_while_a_region_is_open(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        rows = workspace.journal.last_seq()
        await user.press("w")
        await user.is_told("Decide 2 more regions")
        await user.press("c", "w")
        await user.is_told("Decide one more region")
        assert workspace.journal.last_seq() == rows


async def test_going_back_from_the_message_commits_nothing_and_keeps_the_merge(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        rows = workspace.journal.last_seq()
        await user.press("c", "i", "w")
        await is_asked_for_a_message(user)
        await user.press("escape")
        await user.until(lambda: user.place == "merge", "the merge")
        await user.sees("all decided")
        assert workspace.journal.last_seq() == rows


async def test_the_preview_shows_what_would_change(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "d")
        await user.sees("plan.md  v2 → v3", "+ # The plan", "+ <<<<<<< current")
        await user.press("escape")
        await user.until(lambda: user.place == "merge", "the merge")


async def test_text_in_the_open_editor_is_committed(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "i", "e")
        await user.type("mine: ")
        await user.pilot.click("#current", offset=(8, 1))
        await commits(user)
        await user.is_told("is now version 3")
        assert on_disk(root) == DECIDED.replace("last", "mine: last")


async def test_two_new_versions_before_the_commit_lose_no_text_and_no_choice(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "i")
        write(charlie, CURRENT.replace("middle", "middle, said charlie"), 2)
        write(alice, CURRENT.replace("middle", "middle, said charlie") + "\nthe end\n", 3)
        await user.sees("current v4 · alice", "all decided")
        await commits(user)
        await user.is_told("is now version 5")
        assert on_disk(root) == DECIDED.replace("middle", "middle, said charlie") + "\nthe end\n"


async def test_versions_created_during_the_message_are_merged_before_the_commit(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "i", "w")
        await is_asked_for_a_message(user)
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        write(alice, CURRENT.replace("middle", "the very middle"), 3)
        await user.press("enter")
        await user.is_told("Not committed")
        await user.sees("current v4 · alice", "all decided")
        assert on_disk(root) == CURRENT.replace("middle", "the very middle")
        await commits(user)
        await user.is_told("is now version 5")
        assert on_disk(root) == DECIDED.replace("middle", "the very middle")


async def test_a_newer_version_of_the_same_line_opens_its_region_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        await user.press("b", "c")
        write(alice, CURRENT.replace("last, said alice", "LAST, said alice"), 2)
        await user.sees("current v3 · alice", "all decided")
        kept = [region.choice for region in draft.state.regions if region.kind == "conflict"]
        assert kept == ["both", "current"]
        await user.press("u")
        write(alice, CURRENT.replace("first, said alice", "FIRST, said alice"), 3)
        await user.sees("current v4 · alice", "1 open")


async def test_choosing_the_current_side_dismisses_the_refused_write(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    refused = stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("c", "w")
        await user.is_asked("without the text of bob?")
        await user.press("enter")
        await user.is_told("The refused text of bob stays in the journal.")
        await user.has_taken_in(workspace)
        assert user.model.needs == ()
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert head.version == 2
        assert workspace.journal.content(refused) == "late\n"


async def test_a_refused_write_is_dismissed_and_its_agent_is_notified(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("D")
        await user.is_asked("without the text of bob?")
        await user.press("escape")
        await user.until(lambda: user.place == "merge", "the merge")
        assert len(user.model.conflicts) == 1
        await user.press("D")
        await user.is_asked("without the text of bob?")
        await user.press("enter")
        await user.is_told("is unchanged")
        assert user.place == "files"
        assert "dana dismissed" in str(ok(bob, "collab_read", filepath=PLAN)["notice"])


async def test_a_conflict_that_the_agent_resolves_needs_no_person(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        write(bob, DECIDED, 2)
        await user.is_told("The conflict with bob over plan.md is already settled.")
        await user.sees("already settled; esc leaves", "current v3 · bob")
        rows = workspace.journal.last_seq()
        await user.press("A", "i", "w")
        await user.settle()
        assert user.place == "merge"
        assert workspace.journal.last_seq() == rows


async def test_a_version_equal_to_the_refused_text_settles_the_conflict(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    stale_write(bob, "late\n", 1)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        write(alice, "late\n", 2)
        await user.is_told("version 3 equals the text of bob")
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: not user.model.needs, "nothing that waits")
        await user.sees("same text as v3")
        await user.sees_no("⚔")


async def test_a_conflict_that_was_settled_is_not_counted_in_the_list_of_files(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    conflict = stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.sees("⚔1")
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=conflict)
        await user.sees_no("⚔")


async def test_a_merge_does_not_settle_later_writes(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        later = stale_write(bob, "much later\n", 1)
        await user.is_told("bob has another refused text for this file.")
        await commits(user, "i")
        await user.is_told("is now version 3")
        await user.has_taken_in(workspace)
        assert [conflict.id for conflict in user.model.conflicts] == [later]


async def test_the_files_screen_leads_to_the_conflict_of_the_file(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: len(user.list("versions").items) == 3, "the versions")
        await user.press("M")
        await has_opened_merge(user)
        await commits(user, "i")
        await user.until(lambda: user.place == "files", "the files")
        await user.has_taken_in(workspace)
        await user.press("M")
        await user.is_told("this file has no open conflict")
