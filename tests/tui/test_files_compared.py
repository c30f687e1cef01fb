"""Comparison of any two versions of a shared file, unified or side by side, and the author of each line."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import break_content, version_file
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.team import PLAN, choose_version, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace

POEM = "poem.md"


@pytest.fixture
def poem(alice: Toolbox, bob: Toolbox) -> None:
    """A file with three versions by two authors."""
    write(alice, "one\ntwo\nthree\n", 0, POEM)
    write(bob, "zero\none\ntwo\nthree\n", 1, POEM)
    write(alice, "zero\none\n2\nthree\n", 2, POEM)


async def opens_poem(user: User) -> None:
    await user.goes_to("4", "files")
    await user.until(lambda: user.cursor("shared") is not None, "the file")
    await user.until(lambda: len(user.list("versions").items) == 3, "its versions")
    await user.press("tab")


def title(user: User) -> str:
    return str(user.text("diff").border_title)


def foot(user: User) -> str:
    return str(user.text("diff").border_subtitle)


async def is_titled(user: User, text: str) -> None:
    await user.until(lambda: text in title(user), f"the title {text!r}")


async def test_a_marked_version_is_compared_with_the_one_under_the_cursor(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("space")
        await user.sees("Versions  ◆ v1", "◆─ v1")
        await user.press("g")
        await is_titled(user, "v1 → v3")
        await user.sees("− one", "+ three")
        await user.press("down", "down")
        await is_titled(user, "v1 → v2")
        await user.press("down")
        await is_titled(user, "plan.md v1")


async def test_whichever_of_two_versions_is_marked_the_older_comes_first(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("g", "space", "G")
        await is_titled(user, "v1 → v3")


async def test_a_second_press_takes_the_mark_away_and_another_file_too(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("space", "space")
        await user.sees_no("◆")
        await user.press("space")
        await user.sees("◆─ v1")
        await user.press("shift+tab", "down")
        await user.until(lambda: user.cursor("shared").path == "zoo.md", "another file")
        await user.sees_no("◆")


async def test_a_refused_write_is_compared_with_its_base_and_with_any_version(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("escape")
        await is_titled(user, "v1 → ✗")
        await user.sees("− one", "+ late")
        await user.press("d")
        await is_titled(user, "plan.md ✗ · bob")
        await user.sees("late")
        await user.press("space", "up")
        await is_titled(user, "v3 → ✗")
        await user.sees("− three", "+ late")
        await user.press("down", "down")
        await is_titled(user, "v2 → ✗")
        await user.sees("− two", "+ late")


async def test_two_versions_stand_side_by_side_and_below_each_other_again(
    workspace: Workspace, poem: None
) -> None:
    async with dashboard(workspace) as user:
        await opens_poem(user)
        await user.sees("3 ▌2")
        await user.press("s")
        await user.until(
            lambda: any("− two" in line and "+ 2" in line for line in user.lines()), "both sides"
        )
        await user.press("s")
        await user.until(
            lambda: any("− two" in line and "+ 2" not in line for line in user.lines()), "one side"
        )


async def test_side_by_side_takes_100_columns_and_says_so(workspace: Workspace, poem: None) -> None:
    async with dashboard(workspace, size=NARROW) as user:
        await opens_poem(user)
        await user.press("s")
        await user.is_told("Side by side needs at least 100 columns.")
        await user.pilot.resize_terminal(*MIDDLE)
        await user.until(lambda: user.app.size == MIDDLE, "the size")
        await user.press("s")
        await user.until(
            lambda: any("− two" in line and "+ 2" in line for line in user.lines()), "both sides"
        )
        await user.pilot.resize_terminal(*NARROW)
        await user.until(lambda: user.app.size == NARROW, "the size")
        await user.press("s")
        await user.is_told("Side by side needs at least 100 columns.")
        await user.press("enter")
        await user.until(
            lambda: any("− two" in line and "+ 2" not in line for line in user.lines()), "one side"
        )


async def test_blame_says_who_wrote_each_line_in_which_version_and_why(
    workspace: Workspace, poem: None
) -> None:
    async with dashboard(workspace) as user:
        await opens_poem(user)
        await user.press("L")
        await is_titled(user, "authors of v3")
        await user.sees(
            "v2 bob        1 │ zero",
            "v1 alice      2 │ one",
            "v3 alice      3 │ 2",
            "v1 alice      4 │ three",
        )
        await user.press("enter")
        await user.until(lambda: "v2 · bob" in foot(user), "the first line's version")
        assert "zero⏎one⏎two" in foot(user)
        await user.press("down", "down")
        await user.until(lambda: "v3 · alice" in foot(user), "the third line's version")
        await user.press("G")
        await user.until(lambda: "v1 · alice" in foot(user), "the last line's version")
        await user.press("L")
        await is_titled(user, "poem.md v3 · alice")


async def test_blame_follows_the_cursor_to_other_versions(workspace: Workspace, poem: None) -> None:
    async with dashboard(workspace) as user:
        await opens_poem(user)
        await user.press("L", "down", "down")
        await is_titled(user, "authors of v1")
        await user.sees("v1 alice      1 │ one")
        await user.sees_no("│ zero")


async def test_blame_of_a_refused_write_begins_with_its_base(
    workspace: Workspace, poem: None, bob: Toolbox
) -> None:
    stale_write(bob, "one\ntwo\nthree\nfour\n", 1, POEM)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("escape")
        await is_titled(user, "→ ✗")
        await user.press("L")
        await is_titled(user, "authors of ✗")
        await user.sees("v1 alice      1 │ one", "✗ bob        4 │ four")


async def test_a_file_of_more_versions_than_blame_looks_at_says_which_lines_may_be_older(
    workspace: Workspace, alice: Toolbox
) -> None:
    text = "first\n"
    write(alice, text, 0, POEM)
    for version in range(1, 510):
        text = "first\n" + f"{version}\n"
        write(alice, text, version, POEM)
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: len(user.list("versions").items) == 500, "the versions")
        await user.press("tab", "L")
        await user.sees("≤v11 alice", "│ first", "v510 alice")


async def test_versions_that_are_broken_stand_red_in_the_timeline_with_what_is_wrong(
    root: Path, workspace: Workspace, poem: None
) -> None:
    workspace.flush()
    version_file(root, POEM, 1).unlink()
    break_content(root, POEM, 2, b"other\n")
    version_file(root, POEM, 2).write_text("x")
    async with dashboard(workspace) as user:
        await opens_poem(user)
        await user.sees("✖─ v1", "v1.txt missing", "✖─ v2", "text broken in journal")
        assert user.shows("●─ v3")


async def test_a_text_that_the_journal_has_lost_is_told_and_is_not_brought_back(
    root: Path, workspace: Workspace, poem: None
) -> None:
    break_content(root, POEM, 2, b"\xff\xfe")
    async with dashboard(workspace) as user:
        await opens_poem(user)
        await user.sees("3  2")
        for key in ("d", "L"):
            await user.press(key)
            await user.sees("v2 cannot be read from the journal.")
        await user.press("L", "down")
        await is_titled(user, "poem.md v2 · bob")
        await user.sees("v2 cannot be read from the journal.")
        await user.press("R")
        await user.is_told("v2 cannot be read from the journal.")
        assert user.place == "files"


async def test_a_version_that_changed_nothing_says_so(
    workspace: Workspace, conflict: int, alice: Toolbox
) -> None:
    write(alice, "three\n", 3)
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("g", "d")
        await user.sees("No difference from v3.")


async def test_a_rollback_shows_first_what_it_would_change(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("R")
        await user.is_asked("Roll plan.md back to version 1? This makes version 4; nothing is lost.")
        shown = user.words_in("#changes")
        assert "plan.md v3 → v1" in shown
        assert "− three" in shown
        assert "+ one" in shown


async def test_a_rollback_is_not_done_when_the_file_moved_since_it_was_shown(
    workspace: Workspace, conflict: int, alice: Toolbox
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("R")
        await user.is_asked("This makes version 4")
        write(alice, "four\n", 3)
        await user.press("enter")
        await user.is_asked("Not rolled back: alice made version 4 in the meantime.")
        await user.is_asked("This makes version 5; nothing is lost.")
        assert "− four" in user.words_in("#changes")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert head.version == 4
        await user.press("enter")
        await user.is_told("plan.md is rolled back to version 1, as version 5.")
        await user.until(lambda: user.place == "files", "the files")
        assert workspace.verify() == []
