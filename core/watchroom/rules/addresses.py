"""Whom a row is for, besides those who look at everything. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import END_TASK, MESSAGE, SPAWN, TERMINATE, Row
from watchroom.rules.breaker import is_trip
from watchroom.rules.requests import ends_request

_TASK: Final = "task "


def row_address(row: Row) -> str | None:
    """To whom ``row`` is delivered: a message to an agent or a session, the end of a request to its session,
    the spawn and the end of an agent to its task (`task_address`). None of what was refused."""
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
    """The address of ``task``: no agent's id, and no session's."""
    return _TASK + task
