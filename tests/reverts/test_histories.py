"""Random histories of a workspace: reverting all agents gives the moment back, one of them what only the others did
apart from it, and undoing that gives everything back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from effort import seeds
from watchroom import Workspace, Zone
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext
from watchroom.model import UNCHECKED, Write

ANN = "human:ann"
AGENTS = ("alice", "bob", "charlie")
ZONES: tuple[Zone, ...] = ("collab", "private", "board")
SEEDS = seeds(4, 300)
STEPS = 60
FILES = ("a", "b", "c")
BOARDS = ("global", "top-layer", "mid-layer-tester")


def contents(workspace: Workspace, as_of: int | None = None) -> dict[tuple[str, str], str]:
    """What stands in all files, now or as of a row."""
    journal = workspace.journal
    return {
        (zone, head.path): journal.content(head.seq) or ""
        for zone in ZONES
        for head in journal.heads(zone, as_of=as_of)
        if not head.deleted
    }


class History:
    """Makes random changes: births, deletions, renames, edits anywhere, whole new texts."""

    def __init__(self, workspace: Workspace, chance: random.Random) -> None:
        self._workspace = workspace
        self._chance = chance
        self._line = 0

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self._step(self._chance.choice(AGENTS))

    def _step(self, agent: str) -> None:
        chance = self._chance
        zone = chance.choice(ZONES)
        name = chance.choice(BOARDS if zone == "board" else FILES)
        head = self._workspace.journal.head(zone, f"{agent}/{name}" if zone == "private" else name)
        text = self._workspace.journal.content(head.seq) if head else None
        kind = chance.random()
        if zone == "private" and kind < 0.1 and text is not None:
            self._workspace.private.delete(CallContext(agent, "t"), agent, name)
        elif zone == "private" and kind < 0.2 and text is not None:
            self._write(agent, zone, chance.choice("def"), text)
            self._workspace.private.delete(CallContext(agent, "t"), agent, name)
        elif kind < 0.3 or not text:
            self._write(agent, zone, name, self._text())
        else:
            lines = text.splitlines(keepends=True)
            at = chance.randrange(len(lines) + 1)
            lines[at : at + chance.randrange(3)] = [self._next() for _ in range(chance.randrange(3))]
            self._write(agent, zone, name, "".join(lines))

    def _write(self, agent: str, zone: Zone, name: str, text: str) -> None:
        workspace = self._workspace
        if zone == "private":
            workspace.private.write(CallContext(agent, "t"), agent, name, text)
        elif zone == "collab":
            workspace.collab.write(CallContext(agent, "t"), name, text, UNCHECKED)
        else:
            draft = Write(agent, "t", "board", name, text, expected=UNCHECKED)
            workspace.boards.write(CallContext(agent), name, lambda _: draft)

    def _text(self) -> str:
        return "".join(self._next() for _ in range(self._chance.randrange(1, 8)))

    def _next(self) -> str:
        self._line += 1
        return f"line {self._line}\n"


@pytest.mark.parametrize("seed", SEEDS)
def test_reverting_everybody_gives_the_moment_back(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Workspace.open(tmp_path / "team", agents=AGENTS) as workspace:
        history = History(workspace, chance)
        history.go_on(STEPS)
        moment, before = workspace.journal.last_seq(), contents(workspace)
        history.go_on(STEPS)
        after = contents(workspace)
        everybody = RevertSelection(after=moment)
        first = workspace.reverts.apply(CallContext(ANN), everybody)
        assert contents(workspace) == before
        undone = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
        assert contents(workspace) == after
        workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=undone.id))
        assert contents(workspace) == before
        # What is off already is not reverted once more.
        last = workspace.journal.last_seq()
        again = workspace.reverts.apply(CallContext(ANN), everybody._replace(until=last), clean_only=True)
        assert again.record.written == ()
        assert workspace.verify() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_reverting_one_of_them_loses_no_line_of_the_others(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Workspace.open(tmp_path / "team", agents=AGENTS) as workspace:
        history = History(workspace, chance)
        history.go_on(2 * STEPS)
        moment = chance.randrange(workspace.journal.last_seq())
        before = contents(workspace)
        outcome = workspace.reverts.apply(CallContext(ANN), RevertSelection(("alice",), after=moment))
        after = contents(workspace)
        for place, text in before.items():
            others = [line for line in text.splitlines() if _first_author(workspace, place, line) != "alice"]
            assert set(others) <= set(after.get(place, "").splitlines()), place
        workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
        assert contents(workspace) == before
        assert workspace.verify() == []


def _first_author(workspace: Workspace, place: tuple[str, str], line: str) -> str:
    """Who brought ``line``, which is unique, first to any file."""
    zone, path = place
    for row in workspace.journal.history(zone, path):  # type: ignore[arg-type]
        if line in (workspace.journal.content(row.seq) or "").splitlines():
            return row.actor
    return ""
