"""The worker process of the dashboard beside `anyio.to_process`: how soon it answers, and how long a large
answer holds the event loop up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

import anyio.to_process
from measure import Measure
from watchroom_tui.worker.main import diff
from watchroom_tui.worker.process import WorkerProcess

LINES = 200_000
SMALL_QUESTIONS = 30
MOST_STALL_RATIO = 0.25


@dataclass(frozen=True, slots=True)
class Figures:
    first: float
    small: float
    large: float
    stall: float


def measure() -> list[Measure]:
    """Both in one run, the same questions."""
    ours, theirs = asyncio.run(_both())
    return [
        Measure("worker: first answer, ours ÷ anyio.to_process", ours.first / theirs.first, "×"),
        Measure("worker: a small answer, ours ÷ anyio.to_process", ours.small / theirs.small, "×"),
        Measure("worker: a large answer, ours ÷ anyio.to_process", ours.large / theirs.large, "×"),
        Measure(
            "worker: longest stall of the event loop by a large answer, ours ÷ anyio.to_process",
            ours.stall / theirs.stall,
            "×",
            MOST_STALL_RATIO,
            remark=f"{ours.stall:.2f} s and {theirs.stall:.2f} s, {2 * LINES:,} lines",
        ),
    ]


async def _both() -> tuple[Figures, Figures]:
    process = WorkerProcess()
    try:
        ours = await _figures(process.diff)
    finally:
        await process.close()
    return ours, await _figures(lambda old, new: anyio.to_process.run_sync(diff, old, new))


async def _figures(ask: Callable[[str, str], Awaitable[object]]) -> Figures:
    first = await _seconds(ask("a\nb\n", "a\nc\n"))
    small = median([await _seconds(ask("a\nb\n", "a\nc\n")) for _ in range(SMALL_QUESTIONS)])
    old = "\n".join(map(str, range(LINES)))
    new = "\n".join(f"{number} and some more text" for number in range(LINES))
    asked = asyncio.ensure_future(_seconds(ask(old, new)))
    stall, last = 0.0, time.perf_counter()
    while not asked.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        stall, last = max(stall, now - last - 0.001), now
    return Figures(first, small, await asked, stall)


async def _seconds(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start
