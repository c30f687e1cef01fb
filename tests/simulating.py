"""Runs simulated teams, and stops them when something has happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic

from watchroom import Row, Workspace
from watchroom.registry import Agent
from watchroom.simulation import Simulation, Summary, roster

PATIENCE = 30.0


def open_team(root: Path, count: int) -> tuple[Workspace, list[Agent]]:
    team = roster(count)
    return Workspace.open(root, agents=team), team


def run_until(workspace: Workspace, simulation: Simulation, reached: Callable[[], bool]) -> Summary:
    """Runs a simulation until, after some commit, ``reached`` holds."""
    committed = Event()
    until = monotonic() + 4 * PATIENCE
    unsubscribe = workspace.subscribe(committed.set)
    with simulation:
        while not reached():
            assert committed.wait(PATIENCE), f"nothing happens any more: {simulation.summary()}"
            assert monotonic() < until, f"it does not happen: {simulation.summary()}"
            committed.clear()
    unsubscribe()
    workspace.flush()
    return simulation.summary()


def run_for(workspace: Workspace, simulation: Simulation, calls: int) -> Summary:
    return run_until(workspace, simulation, lambda: simulation.summary().calls >= calls)


def rows_so_far(workspace: Workspace) -> Callable[[], list[Row]]:
    """Gives all rows, and reads only those that are new since it was last asked."""
    rows: list[Row] = []

    def more() -> list[Row]:
        rows.extend(workspace.journal.rows(rows[-1].seq if rows else 0, limit=1_000_000))
        return rows

    return more


def all_rows(workspace: Workspace) -> list[Row]:
    return workspace.journal.rows(limit=1_000_000)
