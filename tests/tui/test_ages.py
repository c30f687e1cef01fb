"""Ages count up on every screen while nothing happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok
from clock import JumpingClock
from documents import create
from team_boards import TEAM, fill
from tui.driver import User, dashboard
from tui.societies import begins
from tui.team import deliver, write
from watchroom import Toolbox, Workspace

pytestmark = pytest.mark.sqlite("A server has its own clock.")

MINUTES = 2
"""Fewer minutes than until a handoff becomes a need, which would draw everything again."""
SCREENS = {
    "overview": ("1", "agents"),
    "agents": ("2", "files"),
    "handoffs": ("3", "deliveries"),
    "files": ("4", "shared"),
    "documents": ("5", "documents"),
    "boards": ("6", "boards"),
    "tasks": ("9", "tasks"),
}
"""The key of each screen, and a list on it with ages."""


def let_minutes_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    JumpingClock(monkeypatch).ahead = MINUTES * 60 * 10**9


async def sees_seconds(user: User, pane: str) -> None:
    await user.until(lambda: re.search(r"\b\d+ s\b", user.words_in(f"#{pane}")), f"seconds in {pane}")


async def sees_age(user: User, pane: str) -> None:
    await user.until(lambda: f"{MINUTES} m" in user.words_in(f"#{pane}"), f"the age in {pane}")


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice", "bob", *TEAM]) as opened:
        yield opened


@pytest.mark.parametrize("screen", SCREENS)
async def test_ages_count_without_a_new_row(
    workspace: Workspace,
    alice: Toolbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    screen: str,
) -> None:
    write(alice, "one\n", 0)
    deliver(alice, "bob", "data.md")
    ok(alice, "save_to_my_workspace", filename="own.md", content="x")
    fill(workspace)
    create(alice, title="lww_register")
    begins(workspace, tmp_path / "calculator")
    key, pane = SCREENS[screen]
    async with dashboard(workspace) as user:
        if screen != "overview":
            await user.goes_to(key, screen)
        await sees_seconds(user, pane)
        let_minutes_pass(monkeypatch)
        await sees_age(user, pane)


async def test_the_ages_of_hits_count_while_nothing_happens(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alice, "treasure\n", 0)
    async with dashboard(workspace) as user:
        await user.press("ctrl+f")
        await user.until(lambda: user.place == "SearchDialog", "the search")
        await user.paste("treasure")
        await sees_seconds(user, "hits")
        let_minutes_pass(monkeypatch)
        await sees_age(user, "hits")
