"""The board of the simulated agents: several write on it at once, one of them in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import psutil
import pytest
from calls import ok
from simulating import PATIENCE, all_rows, open_team, run_until
from watchroom import Row, Toolbox, Workspace
from watchroom.runtime import Sessions
from watchroom.simulation import Simulation, roster, works_apart
from watchroom.simulation.sheet import Sheet, board

EDITS = 120
AT_ONCE = 20
"""Rows of the board that follow one another."""


class Elsewhere(NamedTuple):
    """A workspace that says of itself that it is in another place."""

    workspace: Workspace
    root: str

    @property
    def sessions(self) -> Sessions:
        return self.workspace.sessions

    def tools(self, agent: str) -> Toolbox:
        return self.workspace.tools(agent)


def edits(workspace: Workspace) -> list[Row]:
    """What was written on the board, its creation apart."""
    rows = (row for row in all_rows(workspace) if (row.zone, row.path) == ("realtime", board().id))
    return [row for row in rows if (row.version or 0) > 1 and row.outcome == "ok"]


def on_board(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = ok(
        workspace.tools("analyst"), "realtime_get_document_snapshot", doc_id=board().id
    )["snapshot"]
    return found


def lines_of(workspace: Workspace) -> dict[str, list[str]]:
    """The lines of each section, by its heading."""
    sheet = Sheet(on_board(workspace), 1)
    return {section.heading: [line.text for line in sheet.lines(section)] for section in board().sections}


def test_several_agents_write_on_one_board_at_once(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        simulation = Simulation(workspace, team, seed=2, speed=0)
        summary = run_until(workspace, simulation, lambda: simulation.summary().edits >= EDITS)
        assert summary.errors == ()
        rows = edits(workspace)
        assert summary.edits == len(rows)
        crowds = [len({row.actor for row in rows[at : at + AT_ONCE]}) for at in range(len(rows) - AT_ONCE)]
        assert max(crowds) >= 3
        done = Counter((row.tool, row.detail.get("op")) for row in rows)
        assert {op for tool, op in done if tool == "realtime_edit_text"} == {"insert", "replace", "delete"}
        assert {op for tool, op in done if tool == "realtime_edit_set"} == {"add", "remove"}
        assert done["realtime_set_field", "set"] > 2
        found = on_board(workspace)
        assert found["done"] == done["realtime_edit_counter", "increment"] > 0
        assert found["title"]
        assert set(found["owners"].values()) <= {agent.id for agent in team}
        assert workspace.verify() == []


def test_the_notes_stay_readable_and_within_bounds(root: Path) -> None:
    workspace, team = open_team(root, 6)
    with workspace:
        simulation = Simulation(workspace, team, seed=3, speed=0)

        def has_grown() -> bool:
            # One agent alone writes Chinese, and may come to it late.
            return simulation.summary().edits >= EDITS and all(lines_of(workspace).values())

        run_until(workspace, simulation, has_grown)
        found = on_board(workspace)
        headings = [line for line in found["notes"].split("\n") if line.startswith("#")]
        assert headings == [section.heading for section in board().sections]
        for section in board().sections:
            lines = lines_of(workspace)[section.heading]
            assert 0 < len(lines) <= section.most + len(team)
            assert all(line.startswith("- ") and "{" not in line for line in lines), lines
            assert (section.language == "zh") == all(not line.isascii() for line in lines)


def test_one_agent_works_in_a_process_of_its_own(root: Path) -> None:
    workspace, team = open_team(root, 4)
    (apart,) = works_apart(team)
    with workspace:
        simulation = Simulation(workspace, team, seed=4, speed=0, apart=[apart])

        def both_wrote() -> bool:
            writers = Counter(row.actor for row in edits(workspace))
            return writers[apart] > 10 and len(writers) >= 3

        summary = run_until(workspace, simulation, both_wrote)
        assert summary.errors == ()
        assert psutil.Process().children() == []
        rows = all_rows(workspace)
        assert summary.edits == len(edits(workspace))
        assert summary.handoffs_sent == sum((row.tool, row.outcome) == ("handoff_file", "ok") for row in rows)
        ended = [head for head in workspace.sessions.list() if head.status == "done"]
        assert summary.sessions == len(ended)
        assert apart in {head.agent for head in ended}
        assert workspace.verify() == []


def test_an_agent_whose_process_dies_is_told_of_and_the_others_go_on(root: Path) -> None:
    workspace, team = open_team(root, 4)
    with workspace:
        simulation = Simulation(workspace, team, seed=5, speed=0, apart=["reviewer"])

        def died_and_went_on() -> bool:
            if not simulation.summary().errors:
                for process in psutil.Process().children():
                    process.kill()
            return bool(simulation.summary().errors) and simulation.summary().calls >= 50

        (error,) = run_until(workspace, simulation, died_and_went_on).errors
        assert error.startswith(f"reviewer: its process ended with status {-signal.SIGKILL}")
        assert workspace.verify() == []


def test_what_goes_wrong_in_the_process_is_logged(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    workspace, team = open_team(root, 3)
    stranger = roster(4)[3]
    with workspace:
        there = Elsewhere(workspace, str(root / "nowhere"))
        simulation = Simulation(there, [*team, stranger], speed=0, apart=[stranger.id])
        (error,) = run_until(workspace, simulation, lambda: bool(simulation.summary().errors)).errors
    assert error.startswith("reviewer: its process ended with status 1: ")
    assert "WorkspaceNotFound" in error
    assert any("Traceback" in record.message for record in caplog.records)


def test_what_else_the_process_prints_does_no_harm(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('good morning')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    workspace, team = open_team(root, 4)
    with workspace:
        simulation = Simulation(workspace, team, speed=0, apart=["reviewer"])

        def reviewer_ended_one() -> bool:
            return any(head.status == "done" for head in workspace.sessions.list("reviewer"))

        assert run_until(workspace, simulation, reviewer_ended_one).errors == ()
    assert "reviewer, in its process: good morning" in caplog.messages


def test_the_process_is_gone_when_the_demo_is_killed(root: Path) -> None:
    workspace, _ = open_team(root, 4)
    until = monotonic() + PATIENCE
    with workspace, closing(workspace.journal.changes()) as commits:
        command = [sys.executable, "-m", "watchroom_tui.cli", "demo", str(root), "--agents", "4"]
        demo = subprocess.Popen([*command, "--headless", "--for", "600"], stdout=subprocess.DEVNULL)
        try:
            while not any(row.actor == "reviewer" for row in all_rows(workspace)):
                commits.wait(PATIENCE)
                assert monotonic() < until
            (process,) = psutil.Process(demo.pid).children()
        finally:
            demo.kill()
            demo.wait()
        assert psutil.wait_procs([process], PATIENCE)[1] == []
        assert workspace.verify() == []
