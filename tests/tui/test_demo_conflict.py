"""The demo's conflict, from its overview to the commit in at most eight keys, in the pilot and in a
terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from pty_driver import Terminal
from tui.driver import dashboard
from tui.team import opens_merge
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, roster

PATH = "release-notes.md"
KEYS = ("c", "i", "w")
PATIENCE = 30.0


@pytest.fixture
def demo(root: Path) -> Iterator[Workspace]:
    """A demo that stopped when two of its agents disagreed."""
    team = roster(3)
    with Workspace.open(root, agents=team) as workspace:
        happened = Event()
        unsubscribe = workspace.subscribe(happened.set)
        with Simulation(workspace, team, seed=5, speed=0):
            while not workspace.journal.refused("collab", PATH):
                assert happened.wait(PATIENCE), "the agents agree"
                happened.clear()
        unsubscribe()
        workspace.flush()
        yield workspace


def check(workspace: Workspace, root: Path) -> None:
    """Check the committed text, author and message, in the journal and on disk."""
    head = workspace.journal.head("collab", PATH)
    assert head is not None
    assert (head.version, head.actor, head.tool) == (3, "human:dana", "resolve_conflict")
    assert head.message == "Merge: 2 from coder, 2 from architect"
    text = workspace.journal.content(head.seq) or ""
    assert text == (root / "collaborative/current" / PATH).read_text(encoding="utf-8")
    for line in (
        "A small calculator for the command line, in plain Python.",
        "- It reads `+ - * / **`, signs and parentheses.",
        "- Results have all digits that a float has.",
        "Copy the folder; nothing is installed. Tests come along.",
    ):
        assert f"{line}\n" in text
    assert "twelve digits" not in text


async def test_the_demos_conflict_is_resolved_from_its_overview_in_five_keys(
    demo: Workspace, root: Path
) -> None:
    async with dashboard(demo) as user:
        assert user.place == "overview"
        draft = await opens_merge(user)
        assert draft.sides.incoming.path == PATH
        assert draft.left == 2
        await user.press(*KEYS)
        await user.until(lambda: user.place == "CommitDialog", "the commit")
        await user.press("enter")
        await user.is_told("is now version 3")
        check(demo, root)


def test_so_it_is_in_a_real_terminal(demo: Workspace, root: Path) -> None:
    command = [sys.executable, "-m", "watchroom_cli.main", "open", str(root), "--as", "dana"]
    with Terminal(command, 120, 40) as terminal:
        terminal.wait_for_text("⚑ 1 needs you", timeout=PATIENCE)
        terminal.send("!")
        terminal.wait_for_text("2 open", timeout=PATIENCE)
        terminal.send("c")
        terminal.wait_for_text("1 open", timeout=PATIENCE)
        terminal.send("i")
        terminal.wait_for_text("all decided", timeout=PATIENCE)
        terminal.send("w")
        terminal.wait_for_text("enter commit", timeout=PATIENCE)
        terminal.send("\r")
        terminal.wait_for_text("is now version 3", timeout=PATIENCE)
    check(demo, root)
