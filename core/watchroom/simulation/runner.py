"""Runs the agents: each through sessions of its own, all on one event loop in a thread of its own, or some of
them apart, in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from threading import Lock, Thread
from traceback import extract_tb
from types import TracebackType
from typing import Final, Self

from watchroom.rules.config import Agent
from watchroom.simulation.apart import Apart
from watchroom.simulation.player import Player, Stage, Workplace
from watchroom.simulation.tally import Summary, Tally
from watchroom.simulation.turns import Turns

_GOODBYE: Final = 2.0
"""So many seconds at most are left to the calls that are in flight at the end."""

_FULL_SPEED: Final = 60.0
"""Where agents never pause, they still ask people no more often than at this speed."""


class Simulation:
    """A team at work, until it is stopped. Public methods may be called from any thread.

    ``agents``, at least one, are registered in ``workspace``. ``speed`` divides all pauses: at 1 an agent
    acts about once a second or two, at 0 it never pauses. With ``people`` the agents ask people now and then:
    they wait for the answer, but not for ever. The agents ``apart`` work in processes of their own, which end
    with the simulation, and ask nobody.
    """

    def __init__(
        self,
        workspace: Workplace,
        agents: Iterable[Agent],
        *,
        seed: int = 0,
        speed: float = 1.0,
        people: bool = False,
        apart: Collection[str] = (),
    ) -> None:
        if speed < 0:
            raise ValueError(f"speed is 0 (no pauses) or more, not {speed}")
        self._workspace = workspace
        self._team = list(agents)
        self._apart = [agent.id for agent in self._team if agent.id in apart]
        self._agents = [(agent, workspace.tools(agent.id)) for agent in self._team if agent.id not in apart]
        self._seed = seed
        self._speed = speed
        self._people = people
        self._tally = Tally()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None

    def start(self) -> None:
        """Let the agents begin. A simulation runs once."""
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
        """What has happened so far."""
        return self._tally.summary()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._play())
            with self._lock:
                self._loop = None

    async def _play(self) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        with self._lock:
            self._loop, self._over = loop, over
            if self._is_stopped:
                over.set()
        began = loop.time()
        turns = Turns(lambda: (loop.time() - began) * (self._speed or _FULL_SPEED)) if self._people else None
        stage = Stage(
            workspace=self._workspace,
            team=self._team,
            seed=self._seed,
            speed=self._speed,
            tally=self._tally,
            over=over,
            people_help=self._people,
            turns=turns,
        )
        players = [Player(stage, agent, toolbox) for agent, toolbox in self._agents]
        await play(stage, players, [Apart(stage, agent) for agent in self._apart])


async def play(stage: Stage, players: Sequence[Player], others: Sequence[Apart] = ()) -> None:
    """Let these live, and those in processes of their own, until the simulation is over."""
    tasks = [asyncio.create_task(_watch(stage, each.id, each)) for each in players]
    # After the others, which would begin slowly beside a process that is loading.
    processes = [asyncio.create_task(_watch(stage, each.id, each)) for each in others]
    await stage.over.wait()
    if tasks:
        resting = [asyncio.create_task(player.comes_to_rest()) for player in players]
        await asyncio.wait(resting, timeout=_GOODBYE)
    for task in tasks:
        task.cancel()
    if tasks or processes:
        await asyncio.wait([*tasks, *processes])


async def _watch(stage: Stage, agent: str, life: Player | Apart) -> None:
    try:
        await life.live()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be seen
        where = extract_tb(error.__traceback__)[-1]
        stage.tally.failed(f"{agent}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")
