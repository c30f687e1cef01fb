"""Plays a scenario: each agent through sessions of its own, all on one event loop in a thread of its own,
one of them, if wanted, in a second process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from threading import Lock, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, Self

from watchroom.rules.config import Agent
from watchroom.sandbox.errors import InvalidWorkspace
from watchroom.simulation.follower import JournalFollower
from watchroom.simulation.player import Player, Stage
from watchroom.simulation.process import AgentProcess
from watchroom.simulation.request_queue import RequestQueue
from watchroom.simulation.scenario import Scenario
from watchroom.simulation.scenario_file import demo
from watchroom.simulation.statistics import Statistics, Summary
from watchroom.workspace import Workspace
from watchroom.zones import Task
from watchroom.zones.task_errors import TaskInUse

_GOODBYE: Final = 2.0
"""So many seconds at most are left to the calls that are in flight at the end."""

_FULL_SPEED: Final = 60.0
"""Where agents never pause, they still ask people no more often than at this speed."""

_SUBMITTER: Final = "human:product"


class Simulation:
    """A team at work in ``workspace``, until it is stopped. Methods may be called from any thread.

    ``agents``, at least one, are registered there. ``scenario`` says what they do, by default the built-in
    one; ``seed`` decides what is left to chance: the same seed and the same results give the same calls.
    ``speed`` divides all pauses: at 1 an agent acts every second or two, at 0 it never pauses. With
    ``people`` the agents ask people now and then, and wait for the answer as long as the scenario says,
    whatever the speed. The agents ``apart`` work in processes of their own, which end with the simulation,
    and ask nobody. Used as a context manager it starts and stops. Raises ValueError where ``speed`` is
    negative.
    """

    def __init__(
        self,
        workspace: Workspace,
        agents: Iterable[Agent],
        *,
        scenario: Scenario | None = None,
        seed: int = 0,
        speed: float = 1.0,
        people: bool = False,
        apart: Collection[str] = (),
    ) -> None:
        if speed < 0:
            raise ValueError(f"speed is 0 (no pauses) or more, not {speed}")
        self._workspace = workspace
        self._scenario = scenario or demo()
        self._team = list(agents)
        self._apart = [agent.id for agent in self._team if agent.id in apart]
        self._seed = seed
        self._speed = speed
        self._people = people
        self._statistics = Statistics()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None

    def start(self) -> None:
        """Let the agents begin. Raises RuntimeError the second time."""
        with self._lock:
            if self._thread is not None or self._is_stopped:
                raise RuntimeError("a simulation can be started only once")
            self._thread = Thread(target=self._run, name="watchroom-simulation", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let each agent finish the call that it is in, and wait for that. Its session can be resumed."""
        with self._lock:
            self._is_stopped = True
            if self._loop is not None and self._over is not None:
                self._loop.call_soon_threadsafe(self._over.set)
        if self._thread is not None:
            self._thread.join()

    def summary(self) -> Summary:
        """What has happened so far, in numbers."""
        return self._statistics.summary()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        with ExitStack() as stack, asyncio.Runner() as runner:
            task = self._begin_task()
            if task is not None:
                # Whoever looks sees that somebody works on it.
                with suppress(TaskInUse):
                    stack.enter_context(self._workspace.tasks.claim(task.id))
            runner.run(self._play())
            with self._lock:
                self._loop = None

    def _begin_task(self) -> Task | None:
        """The task of the scenario, which all agents are members of; begun unless they have one."""
        plan = self._scenario.task_in(self._workspace.config.language)
        if plan is None:
            return None
        tasks = self._workspace.tasks
        known = self._workspace.config.agents
        before = {known[agent.id].task for agent in self._team if agent.id in known} - {""}
        found = next((tasks.find(task) for task in sorted(before) if tasks.is_open(task)), None)
        if found is None:
            folder = os.path.realpath(self._workspace.root) + "-files"
            try:
                found = tasks.submit(_SUBMITTER, plan.text, folder)
            except InvalidWorkspace as error:
                self._statistics.add_error(str(error))
                return None
        self._team = [agent._replace(task=found.id) for agent in self._team]
        if any(known.get(agent.id) != agent for agent in self._team):
            self._workspace.register(self._team)
        return found

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        with self._lock:
            self._loop, self._over = loop, over
            if self._is_stopped:
                over.set()
        began = loop.time()

        def seconds() -> float:
            return (loop.time() - began) * (self._speed or _FULL_SPEED)

        stage = Stage(
            workspace=self._workspace,
            scenario=self._scenario,
            team=self._team,
            seed=self._seed,
            speed=self._speed,
            statistics=self._statistics,
            follower=JournalFollower(self._workspace),
            over=over,
            queue=RequestQueue(self._scenario, seconds) if self._people else None,
        )
        here = [Player(stage, agent) for agent in self._team if agent.id not in self._apart]
        await play(stage, here, [AgentProcess(stage, agent) for agent in self._apart])


async def play(stage: Stage, players: Sequence[Player], processes: Sequence[AgentProcess] = ()) -> None:
    """Let these ``players``, and those in ``processes`` of their own, work on ``stage`` until it is over."""
    tasks = [asyncio.create_task(_watch(stage, each)) for each in players]
    # After the others, which would begin slowly beside a process that is loading.
    others = [asyncio.create_task(_watch(stage, each)) for each in processes]
    await stage.over.wait()
    if tasks:
        resting = [asyncio.create_task(player.comes_to_rest()) for player in players]
        await asyncio.wait(resting, timeout=_GOODBYE)
    for player in players:
        stage.workspace.commands.stop(player.id)
    for task in tasks:
        task.cancel()
    if tasks or others:
        await asyncio.wait([*tasks, *others])
    stage.follower.close()


async def _watch(stage: Stage, life: Player | AgentProcess) -> None:
    try:
        await life.live()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be seen
        where = extract_tb(error.__traceback__)[-1]
        stage.statistics.add_error(
            f"{life.id}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        )
