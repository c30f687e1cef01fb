"""Whom a row is for, besides those who look at everything. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import ANSWER, END_TASK, MESSAGE, SPAWN, TERMINATE, WITHDRAW, Row

_TASK: Final = "task "


def address(row: Row) -> str | None:
    """To whom a row is mail: a word to an agent or a session, what ends a request to its session, who comes
    and goes to its task (`task_address`). What was refused is nobody's."""
    if row.outcome != "ok":
        return None
    if row.zone == "request" and row.tool in (ANSWER, WITHDRAW):
        return row.path.rpartition("/")[0]
    if row.zone == "session" and row.version is None and row.kind == "human":
        return row.path
    if row.zone == "agent":
        if row.tool == MESSAGE:
            return row.path
        if row.tool in (SPAWN, TERMINATE):
            return task_address(str(row.detail["task"]))
    if row.zone == "task" and row.tool == END_TASK:
        return task_address(row.path)
    return None


def task_address(task: str) -> str:
    """No agent's id, and no session's."""
    return _TASK + task
