"""Pure rules about sessions: which agents are stopped, and to which address a row is delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom.features.people.rules import effect_of
from watchroom.features.policy.breaker import is_trip
from watchroom.features.requests.rows import ends_request
from watchroom.features.sessions.rows import is_leave
from watchroom.model import END_TASK, MESSAGE, SPAWN, TERMINATE, Row


def stopped_by(version: Row) -> Mapping[str, int]:
    """Return the agents listed by ``version`` of the path of stopped agents, with the rows that paused them.

    Only rows before ``version`` count.
    """
    agents = version.detail.get("agents")
    if not isinstance(agents, Mapping):
        return {}
    return {agent: row for agent, row in agents.items() if type(row) is int and 0 < row < version.seq}


def stopped_after(stopped: Mapping[str, int], row: Row) -> Mapping[str, int]:
    """Return the stopped agents after the valid row ``row``. ``stopped``: the stopped agents before it.

    A row that stops agents only adds agents, and releases none. Return ``stopped`` itself if nothing changes.
    """
    effect = effect_of(row)
    if effect == "stop":
        return {**stopped, **stopped_by(row)}
    if effect == "release":
        remaining = stopped_by(row)
        return {agent: told for agent, told in stopped.items() if agent in remaining}
    if effect in ("resume", "pause") and row.path in stopped and not is_leave(row):
        # An agent that was paused again for another reason, for example by a revert, is not resumed with the
        # others.
        return {agent: told for agent, told in stopped.items() if agent != row.path}
    return stopped


EVERYBODY: Final = "everybody"
"""A flag in the detail of a stop: it also holds for agents that begin later."""


def stop_of_all_after(stop: int, row: Row) -> int:
    """Return the row that stops all agents after the valid row ``row``, 0 for none. ``stop``: the row before
    it."""
    effect = effect_of(row)
    if effect == "stop" and row.detail.get(EVERYBODY) is True:
        return row.seq
    return 0 if effect == "release" else stop


_TASK: Final = "task "


def row_address(row: Row) -> str | None:
    """Return the address to which ``row`` is delivered; None if the row was refused or has no address.

    A message goes to an agent or a session. The end of a request goes to its session. The spawn or the end of
    an agent goes to its task (`task_address`).
    """
    if row.outcome != "ok":
        return None
    if ends_request(row):
        return row.path.rpartition("/")[0]
    if row.zone == "session" and row.version is None and row.kind == "human":
        return row.path
    if row.zone == "agent":
        if row.tool == MESSAGE or is_trip(row):
            return row.path
        if row.tool in (SPAWN, TERMINATE):
            task = row.detail.get("task")
            return task_address(task) if isinstance(task, str) else None
    if row.zone == "task" and row.tool == END_TASK:
        return task_address(row.path)
    return None


def task_address(task: str) -> str:
    """Return the address of ``task``. It never equals the address of an agent or a session."""
    return _TASK + task
