"""Wait until no budget holds an agent's next call, for calls made outside a session of the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

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
    deadline: float | None = None,
    on_hold: Callable[[], Awaitable[object]] | None = None,
) -> bool:
    """Wait until no budget holds the next call of ``agent`` in its ``session`` (a path, empty for none).

    While a budget is used up, people are asked by one of ``requests``; ``dispatcher`` reports their answer.
    ``deadline`` (the event loop's time, None: no limit) covers the whole wait, however many budgets are used
    up; the request stays open for the next call. ``on_hold`` is awaited once, before the first wait for a
    person. Returns whether people were asked. Raises `BudgetReached` if a person stops the agent or nobody
    answers in time.
    """
    was_asked = False
    while (stopped := await run_in_thread(budgets.find_stop, agent, session)) is None:
        asked = await run_in_thread(budgets.hold_call, agent, session)
        if asked is None:
            return was_asked
        if on_hold is not None and not was_asked:
            await on_hold()
        was_asked = True
        path = str((budget_asked(asked) or {})["request"])
        try:
            async with asyncio.timeout_at(deadline):
                ended = await wait_until_ended(requests, dispatcher, path)
        except TimeoutError:
            raise BudgetReached(used=asked.prompt) from None
        if ended.answer is not None and "once" in ended.answer.values:
            return True
    raise BudgetReached(used=stopped)
