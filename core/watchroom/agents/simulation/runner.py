"""Plays a scenario: all agents on one event loop in a background thread, and some in separate processes."""

from __future__ import annotations

import asyncio
import logging
import os
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Event, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, NamedTuple, Self

from watchroom.agents.simulation.player import FULL_SPEED, GOODBYE, Player, RequestQueue, Stage
from watchroom.agents.simulation.scenario import Scenario
from watchroom.agents.simulation.scenario_file import demo
from watchroom.agents.simulation.statistics import Statistics, Summary
from watchroom.errors import InvalidWorkspace, TaskInUse
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.features.tasks.rows import Task
from watchroom.platform.child_process import module_command
from watchroom.workspace import Workspace

_STOP_INTERVAL: Final = 0.5
"""Seconds between two attempts to stop the commands of agents."""
_SUBMITTER: Final = "human:product"
_MODULE: Final = "watchroom.agents.simulation.process_main"
_END_SECONDS: Final = 10.0
"""Maximum time in seconds for a process to end by itself, even if it is still starting."""
NOTICED_SECONDS: Final = 8.0
"""Seconds after which every process has noticed the loss of a machine."""
_MAX_LINE_BYTES: Final = 1 << 20
_log = logging.getLogger("watchroom")


class AgentPlace(NamedTuple):
    """The place of an agent's process.

    - ``root``: its checkout, default the parent's.
    - ``lost_after``: seconds after which its machine is lost, as in a power cut. The agent then continues in
      the parent's checkout. Default: never.
    """

    root: str = ""
    lost_after: float | None = None


_HERE: Final = AgentPlace()


class Simulation:
    """A team of simulated agents at work. Methods can be called from any thread.

    - ``workspace``: the workspace of the agents.
    - ``agents``: at least one agent, registered in the workspace.
    - ``scenario``: the scenario, default the built-in scenario.
    - ``seed``: the seed of random choices, default 0. The same seed and the same results give the same calls.
    - ``speed``: divides all pauses, default 1: an agent acts every second or two. 0: no pauses.
    - ``people``: agents sometimes ask people and wait for the answer, default False. The timeout is in the
      scenario and does not depend on the speed.
    - ``apart``: agents with a separate process, which ends with the simulation. They ask no people. A mapping
      also contains their places.

    As a context manager it starts and stops. Raises ValueError if ``speed`` is negative.
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
        """Start the agents. Raise RuntimeError the second time."""
        if self._thread.ident is not None or self._stopped.is_set():
            raise RuntimeError("a simulation can be started only once")
        self._thread.start()

    def stop(self) -> None:
        """Stop each agent after its current call, and wait for that. Sessions can be resumed."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def summary(self) -> Summary:
        """Return the statistics so far."""
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
                # The claim shows other processes that agents are working on the task.
                with suppress(TaskInUse):
                    stack.enter_context(self._workspace.tasks.claim(task.id))
            runner.run(self._play())

    def _begin_task(self) -> Task | None:
        """Return the scenario's task, with all agents as members. Submit it unless it exists."""
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
    """Run the agents on ``stage`` until ``over`` ends.

    - ``players``: agents on this event loop.
    - ``processes``: agents in separate processes.
    """
    # The processes come last, because a process that is loading slows down the others.
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
        _, going_on = await asyncio.wait(going_on, timeout=_STOP_INTERVAL)


async def _watch(stage: Stage, life: Player | AgentProcess) -> None:
    try:
        await life.live()
    except Exception as error:  # noqa: BLE001 - shown in the summary
        where = extract_tb(error.__traceback__)[-1]
        stage.errors.append(f"{life.id}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")


class AgentProcess:
    """The process of one agent. ``place``: its place, default the parent's checkout."""

    def __init__(self, stage: Stage, id: str, place: AgentPlace = _HERE) -> None:  # noqa: A002  # as in `Player`
        self._stage = stage
        self._place = place
        self.id = id

    async def live(self) -> None:
        """Run the agent until this is cancelled.

        Its process ends when its standard input ends, so it also ends if this process is killed.
        """
        place = self._place
        if place.lost_after is not None:
            if not await self._work(place.root or self._stage.workspace.root, place.lost_after):
                return
            await asyncio.sleep(NOTICED_SECONDS)
            place = AgentPlace()
        await self._work(place.root or self._stage.workspace.root, None)

    async def _work(self, root: str, lost_after: float | None) -> bool:
        """Run the agent in the checkout ``root``, and kill it after ``lost_after`` seconds.

        Return whether it was killed.
        """
        stage = self._stage
        given = [root, stage.scenario.source, self.id, str(stage.seed), str(stage.speed)]
        # The start is shielded from cancellation, because asyncio warns about a process that it must kill.
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *module_command(_MODULE, *given, *(agent.id for agent in stage.team)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=STDOUT,
                limit=_MAX_LINE_BYTES,
                start_new_session=True,
            )
        )
        last_line = ""
        is_lost = False
        try:
            process = await asyncio.shield(starting)
            async with asyncio.timeout(lost_after):
                while process.stdout is not None and (line := await process.stdout.readline()):
                    last_line = self._log_line(line)
        except TimeoutError:
            is_lost = True
            (await starting).kill()
        except asyncio.CancelledError:
            # The code below tells it to end.
            pass
        process = await starting
        with suppress(TimeoutError):
            # This closes its standard input, and reads the last lines of its output.
            async with asyncio.timeout(_END_SECONDS):
                rest, _ = await process.communicate(b"")
            for line in rest.splitlines():
                last_line = self._log_line(line)
        if process.returncode is None:
            process.kill()
        code = await process.wait()
        if code != 0 and not is_lost:
            stage.errors.append(f"{self.id}: its process ended with status {code}: {last_line}")
        return is_lost

    def _log_line(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()
        _log.error("%s, in its process: %s", self.id, text)
        return text
