"""Hold the next prompt or call of a client while a budget is used up."""

from __future__ import annotations

from watchroom.runtime.budget_waiting import wait_for_budgets
from watchroom.runtime.errors import BudgetReached
from watchroom.workspace import Workspace


async def hold_for_budgets(workspace: Workspace, agent: str, session: str) -> str:
    """Wait while a budget of ``agent`` or of its ``session`` (a path) is used up and people have not decided.
    Returns why the call is not made, empty if it may be made. Raises `JournalError`."""
    try:
        await wait_for_budgets(workspace.budgets, workspace.requests, workspace.dispatcher, agent, session)
    except BudgetReached as error:
        return error.message(workspace.config.language)
    return ""
