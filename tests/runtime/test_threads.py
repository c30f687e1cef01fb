"""Between the event loop and threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from watchroom.features.sessions.runtime.threads import run_to_completion

PATIENCE = 30


async def test_what_was_begun_is_waited_for_however_often_who_waits_is_cancelled() -> None:
    begun, may_end, written = Event(), Event(), Event()

    def write() -> None:
        begun.set()
        may_end.wait(PATIENCE)
        written.set()

    with ThreadPoolExecutor(1) as pool:
        waiting = asyncio.create_task(run_to_completion(pool, write))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        for _ in range(3):
            waiting.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not waiting.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert written.is_set()
