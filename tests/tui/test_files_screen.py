"""The files screen: versions, comparison, and rollback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.team import PLAN, choose_version
from watchroom import Workspace
from watchroom_tui.formatters.styled_text import Line


async def test_rolling_back_asks_first_and_no_changes_nothing(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        rows = workspace.journal.last_seq()
        await user.press("R")
        await user.is_asked("Roll plan.md back to version 1? This makes version 4; nothing is lost.")
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        assert workspace.journal.last_seq() == rows


async def test_rolling_back_makes_a_new_version_in_the_persons_name(
    root: Path, workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("R")
        await user.is_asked("Roll plan.md back to version 1?")
        await user.press("enter")
        await user.is_told("plan.md is rolled back to version 1, as version 4.")
        head = workspace.journal.head("collab", PLAN)
        assert head is not None
        assert (head.version, head.actor, head.tool) == (4, "human:dana", "collab_rollback")
        assert workspace.journal.content(head.seq) == "one\n"
        assert (root / "collaborative/current" / PLAN).read_text(encoding="utf-8") == "one\n"
        await user.sees("v4", "✓ all well")
        assert workspace.verify() == []


async def test_the_current_version_and_a_refused_write_cannot_be_brought_back(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        rows = workspace.journal.last_seq()
        await user.press("g", "R")
        await user.is_told("Version 3 is already current.")
        await user.press("down", "R")
        await user.is_told("You cannot roll back to a refused version.")
        assert user.cursor("versions").seq == conflict
        assert workspace.journal.last_seq() == rows


async def test_d_shows_the_difference_from_the_version_before_and_the_text_again(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        await user.press("g")
        await user.sees("plan.md v3 · alice", "1 ▌three")
        await user.press("d")
        await user.sees("v2 → v3", "− two", "+ three")
        await user.press("G")
        await user.sees("v0 → v1", "+ one")
        await user.press("d")
        await user.sees("plan.md v1 · alice", "1  one")


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_enter_shows_the_text_of_a_file(
    workspace: Workspace, conflict: int, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: len(user.list("shared").items) == 3, "the files")
        await user.press("down", "enter")
        await user.until(lambda: user.pane == "diff", "the text")
        await user.sees("plan.md v3 · alice", "1 ▌three")


async def test_only_a_file_with_a_conflict_offers_to_settle_it(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.until(lambda: user.cursor("shared") is not None, "the files")
        assert user.cursor("shared").path == "another.md"
        await user.sees_no("M conflict")
        await user.press("down")
        await user.sees("M conflict")


async def test_a_conflict_is_red_while_it_is_open_and_grey_once_it_is_settled(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await choose_version(user, 1)
        assert refused_style(user, "versions", conflict) == "error"
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=conflict, message="m")
        await user.has_taken_in(workspace)
        await user.until(lambda: refused_style(user, "versions", conflict) == "dim", "the past conflict")
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "the activity")
        assert refused_style(user, "rows", conflict) == "dim"


def refused_style(user: User, pane: str, seq: int) -> str:
    """Return the style of a refused write's sign in a list."""
    shown = user.list(pane)
    cells: Sequence[Line] = next(shown.cells(each) for each in shown.items if each.seq == seq)
    return next(span.style for cell in cells for span in cell if "├" in span.text or "conflict" in span.text)
