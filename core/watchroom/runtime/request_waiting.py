"""Waiting until a request to people has ended, for whoever asked outside a session of the runtime."""

from __future__ import annotations

import asyncio

from watchroom.row_dispatcher import RowDispatcher
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.zones.requests import RequestOutcome, RequestZone


async def wait_for_outcome(
    requests: RequestZone, dispatcher: RowDispatcher, path: str, expires: int | None = None
) -> RequestOutcome:
    """Wait until the request at ``path``, one of ``requests``, is answered or withdrawn, of which
    ``dispatcher`` tells, or until it ``expires`` (nanoseconds since the epoch, None: never). Returns how it
    ended; a wait that is cancelled withdraws it. Raises `RequestNotFound`."""
    seconds = None if expires is None else max(0.0, (expires - requests.now()) / 1e9)
    try:
        async with asyncio.timeout(seconds):
            return await wait_until_ended(requests, dispatcher, path)
    except TimeoutError:
        return await run_in_thread(requests.expire, path)
    except asyncio.CancelledError:
        await run_to_completion(None, requests.withdraw, path)
        raise


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
