"""The demo with an agent that overwrites others' texts: its work is reverted in six keys, including the one
resulting conflict, and the others' texts are unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulation.playing import run_until, text_of
from tui.driver import dashboard
from tui.team import opens_merge
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, demo
from watchroom.model import ENDED

ROGUE = "auto-fixer"
KEYS = ("V", "enter", "exclamation_mark", "c", "w", "enter")


@pytest.fixture
def spoiled(root: Path) -> Iterator[Workspace]:
    """A workspace in which the rogue agent is done, and the others continued."""
    scenario = demo("rogue-agent")
    team = scenario.roster(None)
    with Workspace.open(root, agents=team) as workspace:

        def is_spoiled() -> bool:
            done = [head for head in workspace.sessions.list(ROGUE) if head.status in ENDED]
            settings = text_of(workspace.journal, "collab", "settings.toml")
            guide = text_of(workspace.journal, "collab", "guide.md")
            return bool(done) and "timeout = 3  # seconds" in settings and guide.count("\n- ") >= 2

        run_until(
            workspace, Simulation(workspace, team, scenario=scenario, speed=0, people=False), is_spoiled
        )
    # The process that played them has ended, so there is nothing to wait for.
    with Workspace.open(root) as workspace:
        yield workspace


async def test_the_rogue_agents_work_is_reverted_in_six_keys(spoiled: Workspace, root: Path) -> None:
    journal = spoiled.journal
    guide, settings = (text_of(journal, "collab", path) for path in ("guide.md", "settings.toml"))
    theirs = {
        (head.zone, head.path): head.sha256
        for zone in ("private", "collab")
        for head in journal.heads(zone)
        if head.actor != ROGUE and head.path not in ("guide.md", "settings.toml")
    }
    first = journal.version("collab", "tests.md", 1)
    assert first is not None
    async with dashboard(spoiled) as user:
        # Agents with interrupted sessions are above it.
        await user.until(lambda: user.list("agents").move_to(ROGUE), "the agent")
        pressed = iter(KEYS)
        await user.press(next(pressed))
        await user.until(lambda: "agents are paused" in user.words_in("#question"), "what it changes")
        await user.press(next(pressed))
        await user.until(lambda: user.place == "overview" and bool(user.model.conflicts), "the conflict")
        await user.sees("revert: without the work of auto-fixer")
        assert next(pressed) == "exclamation_mark"
        draft = await opens_merge(user)
        assert draft.left == 1
        await user.press(next(pressed), next(pressed))
        await user.until(lambda: "Keep settings.toml" in user.words_in("#question"), "the question")
        await user.press(next(pressed))
        await user.until(lambda: not user.model.conflicts, "that it is settled")
    files = root / "collaborative/current"
    assert (files / "tests.md").read_text(encoding="utf-8") == journal.content(first.seq)
    assert (files / "guide.md").read_text(encoding="utf-8") == guide.replace("may", "must not")
    assert (files / "settings.toml").read_text(encoding="utf-8") == settings.replace(
        "batch = 3\n", "batch = 30\n"
    )
    assert not (files / "generated/report.md").exists()
    now = {(zone, path): journal.head(zone, path) for zone, path in theirs}
    assert {place: head.sha256 for place, head in now.items() if head} == theirs
    assert spoiled.verify() == []
