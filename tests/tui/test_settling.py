"""How a conflict ends: a commit, a dismissal, a file put back. All of it from the keyboard, and in the journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok
from tui.driving import MIDDLE, NARROW, WIDE, Desk, dashboard
from tui.team import BASE, CURRENT, PLAN, busy, collide, has_opened_merge, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace

DECIDED = "# The plan\n\nfirst, said alice\n\nmiddle\n\nlast, said bob\n"


def on_disk(root: Path, path: str = PLAN) -> str:
    return (root / "collaborative/current" / path).read_text(encoding="utf-8")


async def is_asked_for_a_message(desk: Desk) -> None:
    await desk.until(lambda: desk.place == "CommitScreen", "the commit")
    await desk.settle()


async def commits(desk: Desk, *keys: str) -> None:
    """Decide with ``keys``, then commit with the message that is proposed."""
    await desk.press(*keys, "w")
    await is_asked_for_a_message(desk)
    await desk.press("enter")


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
        await desk.is_told("plan.md is version 3 now. The conflict with bob is settled.")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert (head.version, head.base, head.actor, head.tool) == (3, 2, "human:dana", "resolve_conflict")
        assert head.message == "alice's words (alice) + bob's words (bob)"
        assert head.detail == {"resolves": [refused]}
        assert workspace.journal.content(head.seq) == on_disk(root) == DECIDED
        await desk.has_taken_in(workspace)
        assert desk.model.needs == ()
        assert desk.place == "files"
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
        hand = await opens_merge(desk)
        await desk.press("b", "c")
        write(alice, CURRENT.replace("last, said alice", "LAST, said alice"), 2)
        await desk.sees("current v3 · alice", "all decided")
        kept = [region.choice for region in hand.merging.regions if region.kind == "conflict"]
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


def stale_write_of_one_line(winner: Toolbox, loser: Toolbox) -> int:
    write(winner, "one\n", 0)
    write(winner, "two\n", 1)
    return stale_write(loser, "late\n", 1)


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


@pytest.fixture
def by_hand(root: Path, workspace: Workspace, alice: Toolbox) -> Callable[[str | None], None]:
    """Changes plan.md behind the journal's back; None deletes it."""
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
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.sees("incoming · outside", "all decided")
        await commits(desk)
        await desk.is_told("is version 2 now")
        assert on_disk(root) == BASE + "by hand\n"
        await desk.has_taken_in(workspace)
        assert desk.model.needs == ()
        assert workspace.scan() == []
        assert workspace.verify() == []


async def test_an_edit_made_by_hand_is_merged_with_a_newer_version(
    root: Path, workspace: Workspace, alice: Toolbox, by_hand: Callable[[str | None], None]
) -> None:
    by_hand(BASE.replace("last", "last, by hand"))
    write(alice, BASE.replace("first", "first, said alice"), 1)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await commits(desk)
        await desk.is_told("is version 3 now")
        assert on_disk(root) == BASE.replace("last", "last, by hand").replace("first", "first, said alice")


@pytest.mark.parametrize("text", ["by hand\n", None], ids=["edited", "deleted"])
async def test_a_file_that_was_changed_by_hand_is_put_back(
    root: Path, workspace: Workspace, by_hand: Callable[[str | None], None], text: str | None
) -> None:
    by_hand(text)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.press("R")
        await desk.is_asked("Put version 1 of plan.md back")
        await desk.press("y")
        await desk.is_told("is as the journal has it")
        assert on_disk(root) == BASE
        await desk.has_taken_in(workspace)
        assert desk.model.needs == ()
        assert workspace.scan() == []


async def test_a_deletion_by_hand_cannot_be_committed(
    workspace: Workspace, by_hand: Callable[[str | None], None]
) -> None:
    by_hand(None)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.sees("deleted by hand; R puts it back")
        await desk.press("w")
        await desk.is_told("Shared files stay: R puts it back")


async def test_a_file_that_was_edited_once_more_is_not_put_back(
    root: Path, workspace: Workspace, by_hand: Callable[[str | None], None]
) -> None:
    by_hand("once\n")
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        (root / "collaborative/current" / PLAN).write_text("twice\n", encoding="utf-8")
        await desk.press("R")
        await desk.is_asked("Put version 1 of plan.md back")
        await desk.press("y")
        await desk.is_told("edited by hand once more")
        assert on_disk(root) == "twice\n"
        assert desk.place == "merge"


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


async def test_the_files_room_leads_to_the_conflict_of_the_file(
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


async def test_an_edit_that_is_no_text_is_never_committed_as_an_empty_file(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, BASE, 0)
    (root / "collaborative/current" / PLAN).write_bytes(b"\xff\0")
    write(alice, CURRENT, 1)
    async with dashboard(workspace) as desk:
        await opens_merge(desk)
        await desk.sees("no text; R settles it")
        await desk.press("w")
        await desk.is_told("is no text, or too long")
        await desk.press("R")
        await desk.is_asked("Put version 2 of plan.md back")
        await desk.press("y")
        await desk.is_told("is as the journal has it")
        assert on_disk(root) == CURRENT


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
            await desk.until(lambda: desk.place != "merge", "another room")
        await desk.is_told("plan.md is version 3 now. The conflict with bob is settled.")
        assert on_disk(root) == DECIDED


async def test_a_commit_that_is_refused_after_its_merge_was_left_waits_there_with_what_was_decided(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        hand = await opens_merge(desk)
        await desk.press("c", "i", "w")
        await is_asked_for_a_message(desk)
        write(alice, CURRENT.replace("middle", "the middle"), 2)
        with busy(workspace):
            await desk.press("enter")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("escape")
            await desk.until(lambda: desk.place == "files", "the files")
        await desk.is_told("Not committed")
        assert await opens_merge(desk) is hand
        await desk.sees("current v3 · alice", "all decided")
        await commits(desk)
        await desk.is_told("is version 4 now")


async def test_a_merge_that_was_left_and_opened_again_closes_when_its_commit_is_done(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as desk:
        hand = await opens_merge(desk)
        with busy(workspace):
            await commits(desk, "c", "i")
            await desk.until(lambda: desk.place == "merge", "the merge")
            await desk.press("escape")
            await desk.until(lambda: desk.place == "files", "the files")
            assert await opens_merge(desk) is hand
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
            await desk.until(lambda: desk.place == "HelpScreen", "the help")
        await desk.is_told("is version 3 now")
        assert desk.place == "HelpScreen"
        await desk.press("escape")
        await desk.until(lambda: desk.place == "files", "the files")
