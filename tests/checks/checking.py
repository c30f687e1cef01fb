"""Settings of checks in tests, and their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from watchroom import Workspace
from watchroom.features.checks.rows import CheckEnd, DoneClaim, read_end
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import BEGIN_CHECK, END_CHECK, MESSAGE, SYSTEM, Row


def configure(workspace: Workspace, command: str, *lines: str, name: str = "tests") -> None:
    """Add a check to the settings, as a person's editor does. ``lines``: further lines of its table."""
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    table = [f"name = {json.dumps(name)}", f"command = {json.dumps(command)}", *lines]
    config.write_text("\n".join([config.read_text(), "[[checks]]", *table, ""]))
    workspace.scan()


def rows_of(workspace: Workspace, *tools: str) -> Sequence[Row]:
    return [row for row in workspace.journal.rows(limit=10_000) if row.tool in tools]


def ends(workspace: Workspace) -> list[CheckEnd]:
    """How the checks ended, oldest first."""
    return [read_end(row) for row in rows_of(workspace, END_CHECK)]


def begins(workspace: Workspace) -> Sequence[Row]:
    return rows_of(workspace, BEGIN_CHECK)


def sent_back(workspace: Workspace, agent: str = "alice") -> list[str]:
    """The messages of Watchroom to the agent."""
    rows = rows_of(workspace, MESSAGE)
    return [
        workspace.journal.content(row.seq) or "" for row in rows if (row.actor, row.path) == (SYSTEM, agent)
    ]


def claim_of(workspace: Workspace, agent: str = "alice", *, prompted: int = 0) -> DoneClaim:
    """What the agent says after its newest step."""
    step = workspace.session_zone.newest_step(agent)
    assert step is not None
    return DoneClaim(agent, step.path, step.seq, prompted)


def model_of(workspace: Workspace) -> Model:
    return read_model(workspace.journal, workspace.journal.last_seq())


def agent_of(workspace: Workspace, agent: str = "alice") -> AgentView:
    return next(view for view in model_of(workspace).agents if view.agent.id == agent)
