"""Waits for people: until a request has ended, an agent is resumed, or no budget holds its next call.

A wait that times out, fails or is cancelled never counts as an approval. A caller with several waits in turn
passes the same deadline to each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from watchroom.errors import AgentPaused, BudgetReached
from watchroom.features.budgets.rules import budget_asked
from watchroom.features.budgets.service import BudgetControl
from watchroom.features.requests.rows import CLOCK_SECONDS, has_expired
from watchroom.features.requests.service import RequestOutcome, Requests
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.features.sessions.stops import StoppedAgents
from watchroom.kernel.background import Background


async def wait_for_outcome(
    requests: Requests,
    background: Background,
    path: str,
    expires: int | None = None,
    *,
    deadline: float | None = None,
) -> RequestOutcome:
    """Wait until the request at ``path`` has ended, and return the outcome.

    - ``background``: delivers the row of the answer.
    - ``expires``: when the request expires, in nanoseconds since the epoch; None for never.
    - ``deadline``: the end of the wait, in the event loop's time; None for no limit.

    At ``expires`` or ``deadline`` the request expires. If the wait is cancelled, the request is withdrawn.
    Raise `RequestNotFound`.
    """
    try:
        async with asyncio.timeout_at(deadline), expiry(expires, requests.now):
            return await _wait_until_ended(requests, background, path)
    except TimeoutError:
        return await run_in_thread(requests.expire, path)
    except asyncio.CancelledError:
        await run_to_completion(None, requests.withdraw, path)
        raise


async def wait_for_budgets(
    budgets: BudgetControl,
    requests: Requests,
    background: Background,
    agent: str,
    session: str = "",
    *,
    deadline: float | None = None,
    on_hold: Callable[[], Awaitable[object]] | None = None,
) -> bool:
    """Wait until no budget holds the next call of ``agent``. Return whether people were asked.

    - ``background``: delivers the row of the answer.
    - ``session``: the path of the agent's session, empty for none.
    - ``deadline``: the end of the wait for all budgets, in the event loop's time; None for no limit.
    - ``on_hold``: awaited once, before the first wait for a person.

    People are asked about each budget that is used up. At ``deadline`` the request stays open for the next
    call. Raise `BudgetReached` if a person stops the agent or nobody answers in time.
    """
    was_asked = False
    while True:
        await run_in_thread(budgets.check_stop, agent, session)
        asked = await run_in_thread(budgets.hold_call, agent, session)
        if asked is None:
            return was_asked
        if on_hold is not None and not was_asked:
            await on_hold()
        was_asked = True
        path = str((budget_asked(asked) or {})["request"])
        try:
            async with asyncio.timeout_at(deadline):
                ended = await _wait_until_ended(requests, background, path)
        except TimeoutError:
            raise BudgetReached(used=asked.prompt) from None
        if ended.answer is not None and "once" in ended.answer.values:
            return True


async def wait_until_resumed(stops: StoppedAgents, agent: str, deadline: float) -> None:
    """Wait while ``agent`` is paused, until a person resumes it.

    ``deadline``: the end of the wait, in the event loop's time. Raise `AgentPaused` if nobody resumes the
    agent in time, or if its session ends instead.
    """
    if not await run_in_thread(stops.is_paused, agent):
        return
    try:
        async with asyncio.timeout_at(deadline):
            was_open = await run_in_thread(stops.is_open, agent)
            while await run_in_thread(stops.is_paused, agent):
                if was_open and not await run_in_thread(stops.is_open, agent):
                    break
                # The step in which a session obeys a resume is delivered to no address.
                await asyncio.sleep(CLOCK_SECONDS)
    except TimeoutError:
        raise AgentPaused(agent=agent) from None
    if was_open and not await run_in_thread(stops.is_active, agent):
        raise AgentPaused(agent=agent)


@asynccontextmanager
async def expiry(expires: int | None, now: Callable[[], int]) -> AsyncIterator[None]:
    """Run the block until ``expires`` at the latest. Raise TimeoutError.

    - ``expires``: nanoseconds since the epoch by the journal's clock; None for no limit.
    - ``now``: the journal's clock.

    If the clock jumps past ``expires``, the block ends within `CLOCK_SECONDS`. If the clock is set back, the
    block ends after the number of seconds that remained at its start.
    """
    if expires is None:
        yield
        return
    loop, handle = asyncio.get_running_loop(), None
    end = loop.time() + max(0.0, (expires - now()) / 1e9)

    def check() -> None:
        nonlocal handle
        if limit.expired():
            return
        if has_expired(expires, now()):
            limit.reschedule(loop.time())
        else:
            handle = loop.call_later(CLOCK_SECONDS, check)

    async with asyncio.timeout_at(end) as limit:
        handle = loop.call_later(CLOCK_SECONDS, check)
        try:
            yield
        finally:
            handle.cancel()


async def _wait_until_ended(requests: Requests, background: Background, path: str) -> RequestOutcome:
    """Wait until the request at ``path`` has ended, and return the outcome. Cancellation changes nothing."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    unsubscribe = background.subscribe(
        (path.rpartition("/")[0],), lambda _: call_soon_threadsafe(loop, changed.set)
    )
    try:
        while (ended := await run_in_thread(requests.ended, path)) is None:
            await changed.wait()
            changed.clear()
        return ended
    finally:
        unsubscribe()
