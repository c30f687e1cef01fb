"""Runs blocking calls in threads, and awaits them on the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final, NoReturn, ParamSpec, TypeVar

from watchroom.errors import JournalError

P = ParamSpec("P")
T = TypeVar("T")

_MAX_IDLE: Final = 32
"""Maximum number of idle threads that are kept."""


class _Workers:
    """An unbounded pool of threads. Threads are reused, because starting one delays the event loop."""

    def __init__(self) -> None:
        self._begin()
        # A forked process does not have the threads of its parent.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def do(self, job: Callable[[], None]) -> None:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = SimpleQueue()
            Thread(target=self._run_worker, args=(worker,), name="watchroom-tool", daemon=True).start()
        worker.put(job)

    def _run_worker(self, worker: SimpleQueue[Callable[[], None]]) -> None:
        is_idle = True
        while is_idle:
            worker.get()()
            with self._lock:
                is_idle = len(self._idle) < _MAX_IDLE
                if is_idle:
                    self._idle.append(worker)


_workers: Final = _Workers()


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of ``function``, called in its own thread with ``args`` and ``kwargs``. A call that
    hangs blocks neither other calls nor the end of the program."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], T]] = loop.create_future()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  # it is raised in the awaiting task
            call_soon_threadsafe(loop, partial(_settle, ended, partial(_raise, error)))
        else:
            call_soon_threadsafe(loop, partial(_settle, ended, lambda: result))

    _workers.do(run)
    return (await ended)()


class _InlineExecutor(Executor):
    """A marker that stands for calls without a thread."""


INLINE: Final[Executor] = _InlineExecutor()
"""Replaces a thread pool: functions are called immediately, on the thread of the event loop."""


async def run_to_completion(
    pool: Executor | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return the result of ``function``, called with ``args`` and ``kwargs`` in a thread of ``pool`` (None:
    the event loop's default pool).

    A call that has started is awaited even if the caller is cancelled, so a write is completed. Raise
    `JournalError` if the pool was shut down.
    """
    if pool is INLINE:
        return function(*args, **kwargs)
    loop = asyncio.get_running_loop()
    try:
        running = loop.run_in_executor(pool, partial(function, *args, **kwargs))
    except RuntimeError as error:
        raise JournalError(reason=str(error)) from error
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({running})
        raise


def call_soon_threadsafe(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call ``function`` on ``loop`` from any thread. Do nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)


def is_task_cancelled() -> bool:
    """Return whether the current task was cancelled. If not, a CancelledError is an ordinary error."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _settle(ended: asyncio.Future[Callable[[], T]], outcome: Callable[[], T]) -> None:
    if not ended.done():
        ended.set_result(outcome)


def _raise(error: BaseException) -> NoReturn:
    # SystemExit and the like must not end the program.
    raise error if isinstance(error, Exception) else RuntimeError(repr(error)) from error
