"""A writer that is killed at a random moment loses nothing that it acknowledged, and leaves nothing half-done."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from crash import writer
from crash.nursery import nursery
from crash.writer import AGENTS, Acknowledged
from effort import rounds, seed
from evidence import outside_rows, snapshot, torn
from platforms.choice import choose_platform
from watchroom import Workspace

TEAMS = 2
KILLS = rounds(10, 25)
MOST_BEFORE_DEATH = 40


@pytest.mark.parametrize("team", range(TEAMS))
def test_killed_again_and_again_nothing_acknowledged_is_lost(
    root: Path, request: pytest.FixtureRequest, team: int
) -> None:
    """Looked at after each kill; `test_reliability_commands` kills more at once. The last team has no more of its system than
    POSIX."""
    name = "posix" if team == TEAMS - 1 else request.config.getoption("--platform")
    on = choose_platform(name)
    Workspace.open(root, agents=AGENTS, platform=on).close()
    chance = random.Random(seed(team))
    seen = 0
    kept: list[Acknowledged] = []
    with nursery(writer.__file__, root, name) as writers:
        for number in range(team * KILLS, (team + 1) * KILLS):
            acknowledged = writers.run_and_kill(seed(number), after=chance.randint(0, MOST_BEFORE_DEATH))
            left = snapshot(root)
            with Workspace.open(root, platform=on) as workspace:
                assert lost(workspace, acknowledged) == []
                assert list(torn(left, workspace.journal)) == []
                assert workspace.verify() == []
                assert outside_rows(workspace, after=seen) == []
                seen = workspace.journal.last_seq()
            kept.extend(acknowledged)
    assert len(kept) > KILLS
    assert {each["zone"] for each in kept} == {"private", "handoff", "collab", "board"}
    with Workspace.open(root) as workspace:
        assert lost(workspace, kept) == []


def lost(workspace: Workspace, acknowledged: list[Acknowledged]) -> list[Acknowledged]:
    """What the journal does not hold as its writer was told."""
    return [each for each in acknowledged if not _is_kept(workspace, each)]


def _is_kept(workspace: Workspace, each: Acknowledged) -> bool:
    journal = workspace.journal
    if each["version"] is not None:
        row = journal.version(each["zone"], each["path"], each["version"])
        return row is not None and journal.content(row.seq) == each["content"]
    assert each["row"] is not None, each
    (row,) = journal.rows(each["row"] - 1, limit=1)
    return row.outcome == "conflict" and journal.content(row.seq) == each["content"]
