"""Which agents were stopped together by a person, and not let go on since. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom.model import RESUME, Row

STOPPED_PATH: Final = "stopped"
"""In the zone ``workspace``: its newest version says who is stopped."""


def stopped_by(version: Row) -> Mapping[str, int]:
    """By agent, the row that told it to stop, as ``version`` of `STOPPED_PATH` says."""
    agents = version.detail.get("agents")
    if not isinstance(agents, Mapping):
        return {}
    return {agent: row for agent, row in agents.items() if isinstance(row, int)}


def stopped_after(stopped: Mapping[str, int], row: Row) -> Mapping[str, int]:
    """Who is stopped after ``row``, the next one, where ``stopped`` were before: the same object where
    nothing changes."""
    if row.zone == "workspace" and row.path == STOPPED_PATH and row.version is not None:
        return stopped_by(row)
    if row.zone == "session" and row.tool == RESUME and row.kind == "human" and row.path in stopped:
        return {agent: told for agent, told in stopped.items() if agent != row.path}
    return stopped
