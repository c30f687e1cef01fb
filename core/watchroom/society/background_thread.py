"""Societies at work beside something else that has the main thread, such as a dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from watchroom.rules.members import Member
from watchroom.runtime import ModelRuntime
from watchroom.society.society import Society
from watchroom.zones import Task

Models = Callable[[Member], ModelRuntime]


class Background:
    """Lets the agents of these tasks work, on a thread of its own, until the tasks have ended or `stop`.

    ``models`` is opened on that thread, and gives the model of each agent. Without ``stay`` agents that all
    wait for people end it, too. Use it as a context manager.
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
        self._stopping: Callable[[], object] | None = None
        self._is_stopped = False
        self._over = Event()
        self._ended: tuple[Task, ...] = ()
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is over; False if it is not after so many seconds."""
        return self._over.wait(seconds)

    def stop(self) -> None:
        """Let go of the agents where they are; they can be taken up again."""
        with self._lock:
            if self._stopping is not None and not self._is_stopped:
                self._stopping()
            self._is_stopped = True
        self._thread.join()

    def result(self) -> tuple[Task, ...]:
        """The tasks as they stood at the end; none where it was stopped. Raises what ended it otherwise."""
        if self._failure is not None:
            raise self._failure
        return self._ended

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._ended = asyncio.run(self._work())
        except Exception as error:  # noqa: BLE001 - it is raised where somebody asks for the result
            self._failure = error
        finally:
            self._over.set()

    async def _work(self) -> tuple[Task, ...]:
        loop = asyncio.get_running_loop()
        async with self._models() as models:
            society = self._society(models)
            running = (society.run(task, stay=self._stay) for task in self._tasks)
            work = asyncio.gather(*running, return_exceptions=True)
            with self._lock:
                self._stopping = lambda: loop.call_soon_threadsafe(work.cancel)
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
                    self._stopping = None
