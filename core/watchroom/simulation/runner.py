"""Plays a scenario: each agent through sessions of its own, all on one event loop in a thread of its own,
one of them, if wanted, in a second process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Event, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, Self

from watchroom.rules.config import Agent
from watchroom.runtime.threads import run_in_thread
from watchroom.sandbox.errors import InvalidWorkspace
from watchroom.simulation.player import FULL_SPEED, GOODBYE, Player, Stage
from watchroom.simulation.process import AgentPlace, AgentProcess
from watchroom.simulation.request_queue import RequestQueue
from watchroom.simulation.scenario import Scenario
from watchroom.simulation.scenario_file import demo
from watchroom.simulation.statistics import Statistics, Summary
from watchroom.workspace import Workspace
from watchroom.zones import Task
from watchroom.zones.task_errors import TaskInUse

_STOPS_EVERY: Final = 0.5
_SUBMITTER: Final = "human:product"


class Simulation:
    """A team at work in ``workspace``, until it is stopped. Methods may be called from any thread.

    ``agents``, at least one, are registered there. ``scenario`` says what they do, by default the built-in
    one; ``seed`` decides what is left to chance: the same seed and the same results give the same calls.
    ``speed`` divides all pauses: at 1 an agent acts every second or two, at 0 it never pauses. With
    ``people`` the agents ask people now and then, and wait for the answer as long as the scenario says,
    whatever the speed. The agents ``apart`` work in processes of their own, which end with the simulation,
    and ask nobody; a mapping says where each works. Used as a context manager it starts and stops. Raises
    ValueError where ``speed`` is negative.
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
        apart: Collection[str] | Mapping[str, AgentPlace] = (),
    ) -> None:
        if speed < 0:
            raise ValueError(f"speed is 0 (no pauses) or more, not {speed}")
        self._workspace = workspace
        self._scenario = scenario or demo()
        self._team = list(agents)
        places = apart if isinstance(apart, Mapping) else dict.fromkeys(apart, AgentPlace())
        self._apart = {agent.id: places[agent.id] for agent in self._team if agent.id in places}
        self._seed = seed
        self._speed = speed
        self._people = people
        self._statistics = Statistics(workspace.journal)
        self._errors: list[str] = []
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="watchroom-simulation", daemon=True)

    def start(self) -> None:
        """Let the agents begin. Raises RuntimeError the second time."""
        if self._thread.ident is not None or self._stopped.is_set():
            raise RuntimeError("a simulation can be started only once")
        self._thread.start()

    def stop(self) -> None:
        """Let each agent finish the call that it is in, and wait for that. Its session can be resumed."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def summary(self) -> Summary:
        """What has happened so far, in numbers."""
        return self._statistics.summary(tuple(self._errors))

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
                self._errors.append(str(error))
                return None
        self._team = [agent._replace(task=found.id) for agent in self._team]
        if any(known.get(agent.id) != agent for agent in self._team):
            self._workspace.register(self._team)
        return found

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def seconds() -> float:
            return (loop.time() - began) * (self._speed or FULL_SPEED)

        queue = RequestQueue(self._scenario, seconds) if self._people else None
        stage = Stage(
            self._workspace, self._scenario, self._team, self._seed, self._speed, queue, self._errors
        )
        here = [Player(stage, agent) for agent in self._team if agent.id not in self._apart]
        over = run_in_thread(self._stopped.wait)
        await play(stage, over, here, [AgentProcess(stage, *each) for each in self._apart.items()])


async def play(
    stage: Stage, over: Awaitable[object], players: Sequence[Player], processes: Sequence[AgentProcess] = ()
) -> None:
    """Let these ``players``, and those in ``processes`` of their own, work on ``stage`` until
    ``over`` ends."""
    # The processes come last: the others would begin slowly beside one that is loading.
    lives = [
        *(asyncio.create_task(_watch(stage, each)) for each in players),
        *(asyncio.create_task(_watch(stage, each)) for each in processes),
    ]
    await over
    for life in lives:
        life.cancel()
    _, going_on = await asyncio.wait(lives, timeout=GOODBYE)
    while going_on:
        for player in players:
            stage.workspace.commands.stop(player.id)
        _, going_on = await asyncio.wait(going_on, timeout=_STOPS_EVERY)


async def _watch(stage: Stage, life: Player | AgentProcess) -> None:
    try:
        await life.live()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be seen
        where = extract_tb(error.__traceback__)[-1]
        stage.errors.append(f"{life.id}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")
