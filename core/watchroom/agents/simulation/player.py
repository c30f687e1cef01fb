"""One simulated agent: plays its routines one after the other, each in its own session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Final, cast

from watchroom.agents.simulation.model_agent import ScriptedModel
from watchroom.agents.simulation.scenario import Scenario, WaitFor
from watchroom.agents.simulation.script import Play
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.runtime import (
    AgentState,
    AgentTool,
    CallOrigin,
    ChatAgent,
    LimitReached,
    Limits,
    LiveToolsSnapshot,
    Policies,
    RuntimeConfig,
    Session,
    UserMessage,
)
from watchroom.features.sessions.runtime.models import SimulatedModel
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread
from watchroom.kernel.background import EVERY_ROW
from watchroom.model import ENDED, Json, Row, SessionStatus, Zone
from watchroom.workspace import Workspace

FULL_SPEED: Final = 60.0
"""At speed 0, agents ask people as often as at this speed."""

GOODBYE: Final = 2.0
"""Seconds for running calls to end, before commands are stopped."""

_ROUTINE: Final = "routine"
_NUMBER: Final = "number"
_SEED: Final = "seed"
_MAY_WAIT: Final = frozenset({"run_command"})
"""Tools whose calls can take long, and therefore run in a thread. Whiteboard tools also do, because boards
can be locked."""

_REST_SECONDS: Final = 20.0
"""Seconds that an agent rests after its session was ended by a person or a limit."""

_MIN_WAIT_SECONDS: Final = 2.0
_MAX_AT_LIMIT_SECONDS: Final = 600.0
"""Maximum seconds that a session at its limit waits for a person."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The data shared by all agents of a simulation, on one event loop.

    - ``workspace``, ``scenario``, ``team``: the workspace, the scenario, and the agents.
    - ``seed``: the seed of random choices.
    - ``speed``: divides all pauses. 0: no pauses.
    - ``queue``: decides which agent can ask people, None if no agent can.
    - ``errors``: the errors of failed agents.
    """

    workspace: Workspace
    scenario: Scenario
    team: list[Agent]
    seed: int
    speed: float
    queue: RequestQueue | None = None
    errors: list[str] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds`` divided by the speed of the simulation."""
        await asyncio.sleep(seconds / self.speed if self.speed else 0)


class Player:
    """Plays the routines of ``agent`` on ``stage``."""

    def __init__(self, stage: Stage, agent: Agent) -> None:
        self.id = agent.id
        self._stage = stage
        self._agent = agent
        self._toolbox = stage.workspace.tools(agent.id)
        self._actor = stage.scenario.actor_of(agent.id)
        self._tools = [_without_thread(tool) for tool in agent_tools(self._toolbox)]
        self._system = self._toolbox.system_prompt()

    async def live(self) -> None:
        """Resume unfinished sessions, then play routines until this is cancelled or the agent has ended."""
        stage = self._stage
        number = await self._resume_sessions()
        while not stage.workspace.members.has_ended(self.id):
            name = self._next_routine(number)
            if name:
                status = await self._begin(name, number)
                number += 1
                await stage.sleep(_REST_SECONDS if status in ("cancelled", "error") else 0)
            elif stage.queue is None:
                return
            else:
                await asyncio.sleep(1.0 / (stage.speed or FULL_SPEED))

    def _next_routine(self, number: int) -> str:
        """Return the routine of the session ``number``, empty if there is nothing to do."""
        if self._actor is None:
            return ""
        if number < len(self._actor.first):
            return self._actor.first[number]
        asked = self._stage.queue.take(self.id) if self._stage.queue is not None else ""
        if asked or not self._actor.then:
            return asked
        random = Random(f"{self._stage.seed}:{self.id}:{number}:next")
        return random.choices(list(self._actor.then), list(self._actor.then.values()))[0]

    async def _begin(self, name: str, number: int) -> SessionStatus:
        play = self._play(number, self._stage.seed)
        async with self._stage.workspace.sessions.begin(
            self.id,
            self._chat_agent(name, play),
            self._config(name),
            messages=[UserMessage(content=play.task(name), author=self._agent.supervisor)],
            metadata={_ROUTINE: name, _NUMBER: number, _SEED: self._stage.seed},
        ) as session:
            if number == 0:
                await self._stage.sleep(Random(f"{self._stage.seed}:{self.id}:start").uniform(0.0, 1.5))
            return await self._run(session)

    async def _resume_sessions(self) -> int:
        """Resume the unfinished sessions of an earlier simulation. Return the number of all sessions.

        A session that a person paused stays paused until a person resumes it.
        """
        sessions = self._stage.workspace.sessions
        heads = sessions.list(self.id)
        for head in heads:
            if head.status in ENDED:
                continue
            metadata = sessions.state(self.id, head.id).metadata
            name = str(metadata.get(_ROUTINE))
            if name not in self._stage.scenario.routines:
                continue
            if self._stage.queue is not None and head.status == "waiting_for_human_input":
                self._stage.queue.hold(self.id)
            play = self._play(_whole(metadata.get(_NUMBER)), _whole(metadata.get(_SEED)))
            agent = self._chat_agent(name, play)
            async with sessions.resume(self.id, head.id, agent, self._config(name)) as session:
                await self._run(session)
        return len(heads)

    async def _run(self, session: Session) -> SessionStatus:
        state = await session.run()
        while _is_at_limit(state) and await self._may_go_on(session):
            state = await session.run()
        if self._stage.queue is not None:
            self._stage.queue.end(self.id)
        if state.error is not None and state.status == "error" and not _is_at_limit(state):
            raise RuntimeError(state.error.message)
        return state.status

    async def _may_go_on(self, session: Session) -> bool:
        """Wait until a person lets a session at its limit continue. Return False if nobody does."""
        if self._stage.queue is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self._stage.scenario.answer_within, _MAX_AT_LIMIT_SECONDS)):
                    await session.wait_for_control()
                    return True
        return False

    def _play(self, number: int, seed: int) -> Play:
        return Play(
            self._stage.scenario,
            self._agent,
            self._stage.team,
            seed=seed,
            number=number,
            language=self._toolbox.language,
            now=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    def _chat_agent(self, name: str, play: Play) -> ChatAgent:
        scenario = self._stage.scenario
        model = ScriptedModel(partial(play.script, name), speed=self._stage.speed, wait=self._wait)
        # Reading the buffers needs a thread switch before each request.
        has_buffers = "open_buffer" in scenario.calls_in(name)
        return ChatAgent(
            self._tools,
            model_runtime=SimulatedModel(model),
            system=self._system,
            model="simulated",
            policies=Policies(tools=dict.fromkeys(scenario.routines[name].approve, "ask")),
            asks=True,
            live=_Buffers(self._toolbox) if has_buffers else None,
            language=self._toolbox.language,
        )

    def _config(self, name: str) -> RuntimeConfig:
        limit = self._stage.scenario.routines[name].limit
        return RuntimeConfig(
            limits=Limits(steps=limit.steps or None, tokens=limit.tokens or None),
            ask_timeout=self._stage.scenario.answer_within,
            language=self._toolbox.language,
            inline=True,
        )

    async def _wait(self, wait: WaitFor) -> bool:
        seconds = max(wait.most / (self._stage.speed or FULL_SPEED), _MIN_WAIT_SECONDS)
        return await wait_for_version(self._stage.workspace, wait.zone, wait.path, wait.version, seconds)


class _Buffers(BufferTools):
    """The tools of open buffers, without threads: they never wait."""

    def snapshot(self) -> LiveToolsSnapshot:
        snapshot = super().snapshot()
        return snapshot._replace(tools=tuple(map(_without_thread, snapshot.tools)))

    def find(self, name: str) -> AgentTool | None:
        found = super().find(name)
        return None if found is None else _without_thread(found)


def _without_thread(tool: AgentTool) -> AgentTool:
    """Return ``tool`` in a form that runs on the event loop, unless it can wait. This saves a thread switch.

    A call in a thread gets time to end when the simulation ends.
    """
    waits = tool.name in _MAY_WAIT or tool.name.startswith("whiteboard_")

    async def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        if not waits:
            return cast("Json", tool.run(arguments, origin))
        call = asyncio.create_task(run_in_thread(tool.run, arguments, origin))
        try:
            return cast("Json", await asyncio.shield(call))
        finally:
            await asyncio.wait({call}, timeout=2 * GOODBYE)

    return replace(tool, run=run)


def _is_at_limit(state: AgentState) -> bool:
    return state.status == "error" and state.error is not None and state.error.code == LimitReached.code


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


class RequestQueue:
    """Decides which agent can ask people a question now. For use on one thread.

    - ``scenario``: has the requests, the interval between them, and the maximum number of open requests.
    - ``clock``: returns the seconds since the start, at speed 1.
    """

    def __init__(self, scenario: Scenario, clock: Callable[[], float]) -> None:
        self._max_open = scenario.open_requests
        self._interval = scenario.request_every
        self._clock = clock
        self._plans = [(plan.after, plan) for plan in scenario.requests]
        self._open: set[str] = set()

    def take(self, agent: str) -> str:
        """Return the routine in which ``agent`` asks a question now, empty if it cannot ask.

        The same request is due again later.
        """
        if len(self._open) >= self._max_open:
            return ""
        now = self._clock()
        for at, (due, plan) in enumerate(self._plans):
            if due <= now and agent in plan.by:
                del self._plans[at]
                self._plans.append((self._next_due(now), plan))
                self._open.add(agent)
                return plan.play
        return ""

    def hold(self, agent: str) -> None:
        """Count an open request of ``agent`` from an earlier simulation."""
        self._open.add(agent)

    def end(self, agent: str) -> None:
        """Count the request of ``agent`` as closed, because it was answered or has expired."""
        self._open.discard(agent)

    def _next_due(self, now: float) -> float:
        return max([now, *(due for due, _ in self._plans)]) + self._interval


async def wait_for_version(workspace: Workspace, zone: Zone, path: str, version: int, seconds: float) -> bool:
    """Wait until ``path`` in ``zone`` has ``version`` or a later version, written by any process.

    Return False after ``seconds``.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def take(row: Row) -> None:
        if (row.zone, row.path) == (zone, path) and row.version is not None:
            call_soon_threadsafe(loop, changed.set)

    def is_there() -> bool:
        head = workspace.journal.head(zone, path)
        return head is not None and not head.deleted and (head.version or 0) >= version

    end = workspace.background.subscribe((EVERY_ROW,), take)
    try:
        async with asyncio.timeout(seconds):
            while not is_there():
                changed.clear()
                await changed.wait()
        return True
    except TimeoutError:
        return False
    finally:
        end()
