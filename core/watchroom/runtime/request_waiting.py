"""Waiting until a request to people has ended, for whoever asked outside a session of the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.requests import CLOCK_SECONDS, has_expired
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.zones.requests import RequestOutcome, RequestZone


async def wait_for_outcome(
    requests: RequestZone,
    dispatcher: RowDispatcher,
    path: str,
    expires: int | None = None,
    *,
    deadline: float | None = None,
) -> RequestOutcome:
    """Wait until the request at ``path``, one of ``requests``, is answered, withdrawn or expired.

    ``dispatcher`` reports the answer. ``expires``: nanoseconds since the epoch, None: never. ``deadline``:
    the event loop's time by which the wait ends, whatever happens to the wall clock, None: no limit. Returns
    how the request ended. A cancelled wait withdraws the request. Raises `RequestNotFound`.
    """
    try:
        async with asyncio.timeout_at(deadline), expiry(expires, requests.now):
            return await wait_until_ended(requests, dispatcher, path)
    except TimeoutError:
        return await run_in_thread(requests.expire, path)
    except asyncio.CancelledError:
        await run_to_completion(None, requests.withdraw, path)
        raise


@asynccontextmanager
async def expiry(expires: int | None, now: Callable[[], int]) -> AsyncIterator[None]:
    """Limit the block to the time until ``expires`` (nanoseconds since the epoch, None: no limit).

    ``now`` is the journal's clock. The block ends at once after the clock has jumped past ``expires``, and
    after the seconds that were left at the start if the clock is set back. Raises TimeoutError.
    """
    if expires is None:
        yield
        return
    loop, handle = asyncio.get_running_loop(), None
    end = loop.time() + max(0.0, (expires - now()) / 1e9)

    def look() -> None:
        nonlocal handle
        if limit.expired():
            return
        if has_expired(expires, now()):
            limit.reschedule(loop.time())
        else:
            handle = loop.call_later(CLOCK_SECONDS, look)

    async with asyncio.timeout_at(end) as limit:
        handle = loop.call_later(CLOCK_SECONDS, look)
        try:
            yield
        finally:
            handle.cancel()


async def wait_until_ended(requests: RequestZone, dispatcher: RowDispatcher, path: str) -> RequestOutcome:
    """Wait until the request at ``path``, one of ``requests``, has ended, of which ``dispatcher`` tells.
    Returns how it ended; a wait that is cancelled changes nothing."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    unsubscribe = dispatcher.subscribe(
        (path.rpartition("/")[0],), lambda _: call_soon_threadsafe(loop, changed.set)
    )
    try:
        while (ended := await run_in_thread(requests.ended, path)) is None:
            await changed.wait()
            changed.clear()
        return ended
    finally:
        unsubscribe()
