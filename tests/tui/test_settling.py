"""How a conflict ends: a commit or a dismissal. All of it from the keyboard, and in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from tui.driving import MIDDLE, NARROW, WIDE, dashboard
from tui.settling import DECIDED, commits, is_asked_for_a_message, on_disk, stale_write_of_one_line
from tui.team import CURRENT, PLAN, collide, has_opened_merge, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_a_conflict_with_two_regions_is_resolved_in_five_key_presses(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, size: tuple[int, int]
) -> None:
    refused = collide(alice, bob)
    async with dashboard(workspace, size=size) as desk:
        await opens_merge(desk)  # one key: !
        await desk.press("c", "i", "w")
        await is_asked_for_a_message(desk)
        await desk.sees("+ last, said bob")
        await desk.press("enter")
        await desk.is_told(
            "plan.md is version 3 now: 1 from alice, 2 from bob. The conflict with bob is settled."
        )
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert (head.version, head.base, head.actor, head.tool) == (3, 2, "human:dana", "resolve_conflict")
        assert head.message == "1 from alice, 2 from bob: alice's words (alice) + bob's words (bob)"
        assert head.detail == {"resolves": [refused]}
        assert workspace.journal.content(head.seq) == on_disk(root) == DECIDED
        await desk.has_taken_in(workspace)
        assert desk.model.needs == ()
        assert desk.place == "files"
        await desk.until(lambda: desk.cursor("versions").seq == head.seq, "the version that was committed")
        assert workspace.verify() == []


async def test_the_message_can_be_written(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("a", "i", "w")
        await is_asked_for_a_message(desk)
        await desk.press("ctrl+u")
        await desk.press("enter")
        await desk.is_told("Say in a few words")
        await desk.type("bob is right")
        await desk.press("enter")
        await desk.is_told("is version 3 now")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert head.message == "bob is right"


async def test_nothing_is_committed_while_a_region_is_open(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        rows = workspace.journal.last_seq()
        await desk.press("w")
        await desk.is_told("2 regions are still open")
        await desk.press("c", "w")
        await desk.is_told("One region is still open")
        assert workspace.journal.last_seq() == rows


async def test_going_back_from_the_message_commits_nothing_and_keeps_the_merge(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        rows = workspace.journal.last_seq()
        await desk.press("c", "i", "w")
        await is_asked_for_a_message(desk)
        await desk.press("escape")
        await desk.until(lambda: desk.place == "merge", "the merge")
        await desk.sees("all decided")
        assert workspace.journal.last_seq() == rows


async def test_the_preview_shows_what_would_change(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("c", "d")
        await desk.sees("plan.md  v2 → v3", "+ # The plan", "+ <<<<<<< current")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "merge", "the merge")


async def test_what_is_being_written_is_part_of_what_is_committed(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("c", "i", "e")
        await desk.type("mine: ")
        await desk.pilot.click("#current", offset=(8, 1))
        await commits(desk)
        await desk.is_told("is version 3 now")
        assert on_disk(root) == DECIDED.replace("last", "mine: last")


async def test_two_versions_that_come_before_the_commit_cost_no_text_and_no_choice(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("c", "i")
        write(charlie, CURRENT.replace("middle", "middle, said charlie"), 2)
        write(alice, CURRENT.replace("middle", "middle, said charlie") + "\nthe end\n", 3)
        await desk.sees("current v4 · alice", "all decided")
        await commits(desk)
        await desk.is_told("is version 5 now")
        assert on_disk(root) == DECIDED.replace("middle", "middle, said charlie") + "\nthe end\n"


async def test_versions_that_come_while_the_message_is_written_are_merged_in_before_anything_is_committed(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("c", "i", "w")
        await is_asked_for_a_message(desk)
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        write(alice, CURRENT.replace("middle", "the very middle"), 3)
        await desk.press("enter")
        await desk.is_told("Not committed")
        await desk.sees("current v4 · alice", "all decided")
        assert on_disk(root) == CURRENT.replace("middle", "the very middle")
        await commits(desk)
        await desk.is_told("is version 5 now")
        assert on_disk(root) == DECIDED.replace("middle", "the very middle")


async def test_a_newer_version_of_the_same_line_opens_its_region_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        draft = await opens_merge(desk)
        await desk.press("b", "c")
        write(alice, CURRENT.replace("last, said alice", "LAST, said alice"), 2)
        await desk.sees("current v3 · alice", "all decided")
        kept = [region.choice for region in draft.state.regions if region.kind == "conflict"]
        assert kept == ["both", "current"]
        await desk.press("u")
        write(alice, CURRENT.replace("first, said alice", "FIRST, said alice"), 3)
        await desk.sees("current v4 · alice", "1 open")


async def test_choosing_what_stands_dismisses_the_refused_write(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    refused = stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("c", "w")
        await desk.is_asked("without what bob wanted to write?")
        await desk.press("y")
        await desk.is_told("The refused text of bob stays in the journal.")
        await desk.has_taken_in(workspace)
        assert desk.model.needs == ()
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert head.version == 2
        assert workspace.journal.content(refused) == "late\n"


async def test_a_refused_write_is_dismissed_and_its_agent_is_told(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("D")
        await desk.is_asked("without what bob wanted to write?")
        await desk.press("n")
        await desk.until(lambda: desk.place == "merge", "the merge")
        assert len(desk.model.conflicts) == 1
        await desk.press("D")
        await desk.is_asked("without what bob wanted to write?")
        await desk.press("y")
        await desk.is_told("stays as it is")
        assert desk.place == "files"
        assert "dana dismissed" in str(ok(bob, "collab_read", filepath=PLAN)["notice"])


async def test_an_agent_that_recovers_by_itself_leaves_the_person_nothing_to_settle(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        write(bob, DECIDED, 2)
        await desk.is_told("The conflict with bob over plan.md was settled meanwhile.")
        await desk.sees("settled meanwhile; esc leaves", "current v3 · bob")
        rows = workspace.journal.last_seq()
        await desk.press("a", "i", "w")
        await desk.settle()
        assert desk.place == "merge"
        assert workspace.journal.last_seq() == rows


async def test_a_version_with_the_very_text_that_was_refused_leaves_nothing_to_settle(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    stale_write(bob, "late\n", 1)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        write(alice, "late\n", 2)
        await desk.is_told("version 3 has the very text of bob")
        await desk.press("escape")
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.until(lambda: not desk.model.needs, "nothing that waits")
        await desk.sees("same text as v3")
        await desk.sees_no("⚔")


async def test_a_conflict_that_was_settled_is_not_counted_in_the_list_of_files(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    conflict = stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.sees("⚔1")
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=conflict)
        await desk.sees_no("⚔")


async def test_what_an_agent_wrote_after_the_merge_began_is_not_settled_with_it(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        later = stale_write(bob, "much later\n", 1)
        await desk.is_told("bob tried again with another text.")
        await commits(desk, "i")
        await desk.is_told("is version 3 now")
        await desk.has_taken_in(workspace)
        assert [conflict.id for conflict in desk.model.conflicts] == [later]


async def test_the_files_screen_leads_to_the_conflict_of_the_file(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    stale_write_of_one_line(alice, bob)
    async with dashboard(workspace) as desk:
        await desk.goes_to("4", "files")
        await desk.until(lambda: len(desk.list("versions").items) == 3, "the versions")
        await desk.press("c")
        await has_opened_merge(desk)
        await commits(desk, "i")
        await desk.until(lambda: desk.place == "files", "the files")
        await desk.has_taken_in(workspace)
        await desk.press("c")
        await desk.is_told("No conflict is open here.")
