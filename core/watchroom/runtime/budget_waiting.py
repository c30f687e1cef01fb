"""Waiting until no budget holds an agent's next call, for calls that are made outside a session of the
runtime."""

from __future__ import annotations

import asyncio

from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.budgets import budget_asked
from watchroom.runtime.errors import BudgetReached
from watchroom.runtime.request_waiting import wait_until_ended
from watchroom.runtime.threads import run_in_thread
from watchroom.zones.budgets import BudgetZone
from watchroom.zones.requests import RequestZone


async def wait_for_budgets(
    budgets: BudgetZone,
    requests: RequestZone,
    dispatcher: RowDispatcher,
    agent: str,
    session: str = "",
    *,
    seconds: float | None = None,
) -> None:
    """Return once ``agent`` may make its next call, in its ``session`` (a path, empty for none): at once
    where no budget is used up; else people are asked, by one of ``requests``, and ``dispatcher`` tells of
    their answer, as far as ``budgets`` go. Raises `BudgetReached` where they stop it, or have not answered
    within ``seconds`` (None: no limit): then the request stays open for the next call."""
    while (stopped := await run_in_thread(budgets.find_stop, agent, session)) is None:
        asked = await run_in_thread(budgets.hold_call, agent, session)
        if asked is None:
            return
        path = str((budget_asked(asked) or {})["request"])
        try:
            async with asyncio.timeout(seconds):
                ended = await wait_until_ended(requests, dispatcher, path)
        except TimeoutError:
            raise BudgetReached(used=asked.prompt) from None
        if ended.answer is not None and "once" in ended.answer.values:
            return
    raise BudgetReached(used=stopped)
