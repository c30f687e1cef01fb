"""Hold the next prompt or call of a client while a budget is used up."""

from __future__ import annotations

from watchroom.clients.events import BudgetHeld
from watchroom.clients.session import ClientSession
from watchroom.runtime.budget_waiting import wait_for_budgets
from watchroom.runtime.threads import run_in_thread, run_to_completion
from watchroom.workspace import Workspace


async def hold_for_budgets(
    workspace: Workspace, agent: str, session: ClientSession | None, deadline: float | None = None
) -> bool:
    """Wait while a budget of ``agent`` or of its ``session`` is used up and people have not decided.
    Meanwhile the session waits for a person. ``deadline`` as for `wait_for_budgets`. Returns whether people
    were asked. Raises `BudgetReached`, `JournalError`."""
    if session is None:
        return await wait_for_budgets(
            workspace.budgets, workspace.requests, workspace.dispatcher, agent, deadline=deadline
        )
    is_held = False

    async def hold() -> None:
        nonlocal is_held
        is_held = True
        await run_in_thread(session.record, BudgetHeld())

    try:
        return await wait_for_budgets(
            *(workspace.budgets, workspace.requests, workspace.dispatcher),
            *(agent, session.budgeted),
            deadline=deadline,
            on_hold=hold,
        )
    finally:
        if is_held:
            await run_to_completion(None, session.record, BudgetHeld(is_held=False))
