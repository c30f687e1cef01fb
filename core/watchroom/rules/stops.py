"""Which agents a person stopped together, and has not let go on since. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from watchroom.model import Row
from watchroom.rules.effects import effect_of


def stopped_by(version: Row) -> Mapping[str, int]:
    """Return what ``version`` of the path of stopped agents lists: by agent, the row that paused it. That
    row comes before it."""
    agents = version.detail.get("agents")
    if not isinstance(agents, Mapping):
        return {}
    return {agent: row for agent, row in agents.items() if type(row) is int and 0 < row < version.seq}


def stopped_after(stopped: Mapping[str, int], row: Row) -> Mapping[str, int]:
    """Return who is stopped after ``row``, which counts and is the next one, where ``stopped`` were before.

    Stopping only adds agents: nobody is released by a row that says it stops others. The same object is
    returned where nothing changes.
    """
    effect = effect_of(row)
    if effect == "stop":
        return {**stopped, **stopped_by(row)}
    if effect == "release":
        remaining = stopped_by(row)
        return {agent: told for agent, told in stopped.items() if agent in remaining}
    if effect in ("resume", "pause") and row.path in stopped:
        # Who is paused once more, as by a revert, or ended, does not go on with the others.
        return {agent: told for agent, told in stopped.items() if agent != row.path}
    return stopped
