"""Runs the scripts: one thread an agent, its own toolbox, pauses that end when the simulation does."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, Self

from watchroom.simulation.steps import Call, GaveUp, Pause, Result, Script
from watchroom.simulation.tally import Summary, Tally
from watchroom.simulation.work import life
from watchroom.toolbox import Toolbox

_LEAST_WAIT: Final = 0.01
"""Who waits for another agent must not keep it from running, not even at full speed."""

_NOTHING: Final[Result] = {}


class Simulation:
    """A team at work, until it is stopped. Public methods may be called from any thread.

    ``speed`` divides all pauses: at 1 an agent acts about once a second or two, at 0 it never pauses.
    """

    def __init__(self, toolboxes: Mapping[str, Toolbox], *, seed: int = 0, speed: float = 1.0) -> None:
        if speed < 0:
            raise ValueError(f"speed is 0 (no pauses) or more, not {speed}")
        self._toolboxes = dict(toolboxes)
        self._seed = seed
        self._speed = speed
        self._stopping = Event()
        self._tally = Tally()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Let the agents begin. A simulation runs once."""
        if self._threads or self._stopping.is_set():
            raise RuntimeError("a simulation can be started only once")
        self._threads = [
            Thread(target=self._run, args=(agent,), name=f"agent-{agent}", daemon=True)
            for agent in self._toolboxes
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let each agent finish the call that it is in, and wait for that."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def summary(self) -> Summary:
        """What has happened so far."""
        return self._tally.summary()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, agent: str) -> None:
        try:
            self._follow(life(agent, list(self._toolboxes), self._seed), self._toolboxes[agent])
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be seen
            where = extract_tb(error.__traceback__)[-1]
            self._tally.failed(f"{agent}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")

    def _follow(self, script: Script[None], toolbox: Toolbox) -> None:
        result: Result | None = None
        while not self._stopping.is_set():
            step = next(script) if result is None else script.send(result)
            result = self._take(step, toolbox)

    def _take(self, step: Call | Pause | GaveUp, toolbox: Toolbox) -> Result:
        if isinstance(step, Call):
            result = toolbox.dispatch_tool_call(step.tool, step.arguments)
            self._tally.called(step, result)
            return result
        if isinstance(step, GaveUp):
            self._tally.gave_up()
        else:
            self._rest(step)
        return _NOTHING

    def _rest(self, pause: Pause) -> None:
        seconds = pause.seconds / self._speed if self._speed else 0.0
        if pause.waiting:
            seconds = max(seconds, _LEAST_WAIT)
        if seconds > 0:
            self._stopping.wait(seconds)
