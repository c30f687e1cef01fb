"""One agent on the runtime: plays its routines one after the other, each in a session of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Final, cast

from watchroom.journal.topics import messages_to
from watchroom.model import CANCEL, ENDED, PAUSE, RESUME, Json, Row, SessionStatus
from watchroom.rules.config import Agent
from watchroom.runtime import (
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
from watchroom.runtime.models import SimulatedModel
from watchroom.runtime.threads import run_in_thread
from watchroom.simulation.follower import wait_for_version
from watchroom.simulation.model_agent import ScriptedModel
from watchroom.simulation.request_queue import RequestQueue
from watchroom.simulation.scenario import Scenario, WaitFor
from watchroom.simulation.script import Play
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools
from watchroom.workspace import Workspace

FULL_SPEED: Final = 60.0
"""Where agents never pause, they still ask people no more often than at this speed."""

GOODBYE: Final = 2.0
"""So many seconds are left to the calls that are in flight at the end, before commands are stopped."""

_ROUTINE: Final = "routine"
_NUMBER: Final = "number"
_SEED: Final = "seed"
_MAY_WAIT: Final = frozenset({"run_command"})
"""Tools whose calls may last; these, and those of whiteboards, which somebody may hold, run in a thread."""

_REST: Final = 20.0
"""So many seconds an agent does nothing when a person has ended its session, or a limit has."""

_LEAST_WAIT: Final = 2.0
_MOST_AT_LIMIT: Final = 600.0


@dataclass(frozen=True, slots=True)
class Stage:
    """What all agents of a simulation share, on one event loop. ``queue`` is None where no person is asked;
    ``errors`` say what brought agents to an unexpected end."""

    workspace: Workspace
    scenario: Scenario
    team: list[Agent]
    seed: int
    speed: float
    queue: RequestQueue | None = None
    errors: list[str] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Wait so many ``seconds`` at the simulation's speed."""
        await asyncio.sleep(seconds / self.speed if self.speed else 0)


class Player:
    """The life of ``agent`` on a ``stage``."""

    def __init__(self, stage: Stage, agent: Agent) -> None:
        self.id = agent.id
        self._stage = stage
        self._agent = agent
        self._toolbox = stage.workspace.tools(agent.id)
        self._actor = stage.scenario.actor_of(agent.id)
        self._tools = [_without_thread(tool) for tool in agent_tools(self._toolbox)]
        self._system = self._toolbox.system_prompt()

    async def live(self) -> None:
        """Take up what was left of an earlier day, then play one routine after the other until this is
        cancelled, or the agent has ended."""
        stage = self._stage
        number = await self._take_up()
        while not stage.workspace.members.has_ended(self.id):
            name = self._next_routine(number)
            if name:
                status = await self._begin(name, number)
                number += 1
                await stage.sleep(_REST if status in ("cancelled", "error") else 0)
            elif stage.queue is None:
                return
            else:
                await asyncio.sleep(1.0 / (stage.speed or FULL_SPEED))

    def _next_routine(self, number: int) -> str:
        """The routine of the agent's session of that ``number``; empty where it has nothing to do."""
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
            if (paused := self._newest_pause()) is not None:
                await session.pause(paused)
            if number == 0:
                await self._stage.sleep(Random(f"{self._stage.seed}:{self.id}:start").uniform(0.0, 1.5))
            return await self._run(session)

    async def _take_up(self) -> int:
        """Go on with the sessions that an earlier simulation left; one that a person paused stays so until a
        person resumes it. Returns how many sessions the agent has had."""
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

    def _newest_pause(self) -> Row | None:
        """The row by which a person paused the agent between two sessions, if nobody has resumed it."""
        said = self._stage.workspace.journal.topic(messages_to("session", self.id))
        newest = next((row for row in said if row.tool in (PAUSE, RESUME, CANCEL)), None)
        return newest if newest is not None and newest.tool == PAUSE else None

    async def _run(self, session: Session) -> SessionStatus:
        state = await session.run()
        while _is_at_limit(state) and await self._is_let_go_on(session):
            state = await session.run()
        if self._stage.queue is not None:
            self._stage.queue.end(self.id)
        if state.error is not None and state.status == "error" and not _is_at_limit(state):
            raise RuntimeError(state.error.message)
        return state.status

    async def _is_let_go_on(self, session: Session) -> bool:
        """Wait for a person's word to a session that has reached its limit; False if there is none."""
        if self._stage.queue is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self._stage.scenario.answer_within, _MOST_AT_LIMIT)):
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
        # Looking at buffers takes a thread's turn before each question.
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
        seconds = max(wait.most / (self._stage.speed or FULL_SPEED), _LEAST_WAIT)
        return await wait_for_version(self._stage.workspace, wait.zone, wait.path, wait.version, seconds)


class _Buffers(BufferTools):
    """The tools of open buffers, which never wait."""

    def snapshot(self) -> LiveToolsSnapshot:
        snapshot = super().snapshot()
        return snapshot._replace(tools=tuple(map(_without_thread, snapshot.tools)))

    def find(self, name: str) -> AgentTool | None:
        found = super().find(name)
        return None if found is None else _without_thread(found)


def _without_thread(tool: AgentTool) -> AgentTool:
    """``tool``, called on the event loop where it does not wait: that costs no other thread's turn. A call
    in a thread has its time to end also where the simulation ends."""
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
