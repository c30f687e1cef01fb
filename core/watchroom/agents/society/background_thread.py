"""Runs the agents of tasks on a background thread, for example beside a dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager
from threading import Lock, Thread
from types import TracebackType
from typing import Self

from watchroom.agents.society.society import Society
from watchroom.features.sessions.runtime import ModelRuntime
from watchroom.features.tasks.rows import Task
from watchroom.features.tasks.rules import Member

Models = Callable[[Member], ModelRuntime]
"""Returns the model of an agent."""


class SocietyThread:
    """Runs the agents of tasks on a background thread until the tasks have ended or `stop` is called.

    - ``society``: creates the society with the models.
    - ``models``: a context manager, entered on the thread. It yields the function that returns the model of
      an agent.
    - ``tasks``: the ids of the tasks.
    - ``stay``: continue while all agents wait for people, default True.

    As a context manager it starts and stops.
    """

    def __init__(
        self,
        society: Callable[[Models], Society],
        models: Callable[[], AbstractAsyncContextManager[Models]],
        tasks: Sequence[str],
        *,
        stay: bool = True,
    ) -> None:
        self._society = society
        self._models = models
        self._tasks = tasks
        self._stay = stay
        self._thread = Thread(target=self._run, name="watchroom-society", daemon=True)
        self._lock = Lock()
        self._cancel: Callable[[], object] | None = None
        self._is_stopped = False
        self._result: Future[tuple[Task, ...]] = Future()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the thread has ended. ``seconds``: timeout, default none. Return False after the
        timeout."""
        return bool(wait([self._result], seconds).done)

    def stop(self) -> None:
        """Stop the agents and wait until they have stopped. Their sessions can be resumed."""
        with self._lock:
            if self._cancel is not None and not self._is_stopped:
                self._cancel()
            self._is_stopped = True
        self._thread.join()

    def result(self) -> tuple[Task, ...]:
        """Wait for the end. Return the tasks at the end, or an empty tuple after `stop`. Raise the error
        that ended the thread."""
        return self._result.result()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._result.set_result(asyncio.run(self._work()))
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._result.set_exception(error)

    async def _work(self) -> tuple[Task, ...]:
        loop = asyncio.get_running_loop()
        async with self._models() as models:
            society = self._society(models)
            running = (society.run(task, stay=self._stay) for task in self._tasks)
            work = asyncio.gather(*running, return_exceptions=True)
            with self._lock:
                self._cancel = lambda: loop.call_soon_threadsafe(work.cancel)
                if self._is_stopped:
                    work.cancel()
            try:
                ended = await work
                for each in ended:
                    if isinstance(each, BaseException):
                        raise each
                return tuple(each for each in ended if isinstance(each, Task))
            except asyncio.CancelledError:
                return ()
            finally:
                with self._lock:
                    self._cancel = None
