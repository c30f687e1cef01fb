"""Holds the calls that clients make with tools of their own, while a budget is used up."""

from __future__ import annotations

from watchroom.runtime.budget_waiting import wait_for_budgets
from watchroom.runtime.errors import BudgetReached
from watchroom.workspace import Workspace


async def hold_for_budgets(
    workspace: Workspace, agent: str, session: str, seconds: float | None = None
) -> str:
    """Wait while a budget of ``agent`` in ``workspace`` or of its ``session`` (a path) is used up, and people
    have not said what to do, for at most so many ``seconds`` (None: as long as it takes). Returns why the
    call is not made, empty where it may be. Raises `JournalError`."""
    try:
        await wait_for_budgets(
            workspace.budgets, workspace.requests, workspace.dispatcher, agent, session, seconds=seconds
        )
    except BudgetReached as error:
        return error.message(workspace.config.language)
    return ""
