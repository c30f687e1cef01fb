"""Runs simulated teams, and stops them when something has happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, cast

from watchroom import Json, Row, Toolbox, Workspace
from watchroom.rules.config import Agent
from watchroom.runtime import Sessions
from watchroom.simulation import Simulation, Summary, roster

PATIENCE = 30.0

ToolCall: TypeAlias = Callable[[], dict[str, Json]]


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


class Meddled(NamedTuple):
    """A workspace each of whose calls is made by ``meddle``, which is given its agent, and what makes it."""

    workspace: Workspace
    meddle: Callable[[str, ToolCall], dict[str, Json]]

    @property
    def root(self) -> str:
        return self.workspace.root

    @property
    def sessions(self) -> Sessions:
        return self.workspace.sessions

    def tools(self, agent: str) -> Toolbox:
        return cast("Toolbox", _MeddledTools(self.workspace.tools(agent), partial(self.meddle, agent)))


class _MeddledTools:
    def __init__(self, toolbox: Toolbox, meddle: Callable[[ToolCall], dict[str, Json]]) -> None:
        self._toolbox = toolbox
        self._meddle = meddle

    def __getattr__(self, name: str) -> object:
        return getattr(self._toolbox, name)

    def dispatch_tool_call(
        self, tool_name: str, arguments: Mapping[str, Json], **options: Any
    ) -> dict[str, Json]:
        dispatch = self._toolbox.dispatch_tool_call
        return self._meddle(partial(dispatch, tool_name, arguments, **options))
