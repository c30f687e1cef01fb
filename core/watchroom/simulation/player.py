"""One agent on the runtime: plays its routines one after the other, each in a session of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Final, cast

from watchroom.errors import ApprovalOutdated
from watchroom.model import ENDED, Json
from watchroom.rules.config import Agent
from watchroom.rules.requests import Policy
from watchroom.runtime import (
    AgentState,
    AgentTool,
    CallOrigin,
    ChatAgent,
    LimitReached,
    Limits,
    LiveTools,
    LiveToolsSnapshot,
    ModelPayload,
    Policies,
    RuntimeConfig,
    Session,
    UserMessage,
)
from watchroom.runtime.executors.tool_executor import run_tool
from watchroom.runtime.models import ModelChunk, Reply, SimulatedModel
from watchroom.runtime.state import Event
from watchroom.simulation.follower import JournalFollower
from watchroom.simulation.model_agent import ScriptedModel
from watchroom.simulation.request_queue import RequestQueue
from watchroom.simulation.scenario import Routine, Scenario
from watchroom.simulation.script import Play, Script, Wait
from watchroom.simulation.statistics import CallRecord, Statistics
from watchroom.texts import Language
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools
from watchroom.workspace import Workspace

_ROUTINE: Final = "routine"
_NUMBER: Final = "number"
_SEED: Final = "seed"
_RESTS: Final = frozenset(
    {"llm_start", "human_approve_required", "human_prompt_required", "human_select_required"}
)
"""With these events an agent begins to wait, for its model or for a person."""

_MAY_WAIT: Final = frozenset({"run_command"})
"""Tools whose calls may last; these, and those of whiteboards, which somebody may hold, run in a thread."""

_REST: Final = 20.0
"""So many seconds an agent does nothing when a person has ended its session, or a limit has."""

_LEAST_WAIT: Final = 2.0
_MOST_AT_LIMIT: Final = 600.0


class ToolBroke(Exception):
    """A tool did what none may do, and the agent cannot go on."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What all agents of a simulation share, on one event loop. ``queue`` is None where no person is asked;
    ``over``: it ends."""

    workspace: Workspace
    scenario: Scenario
    team: list[Agent]
    seed: int
    speed: float
    statistics: Statistics
    follower: JournalFollower
    over: asyncio.Event
    queue: RequestQueue | None = None

    @property
    def language(self) -> Language:
        return self.workspace.config.language

    async def goes_on(self) -> None:
        """Return at once, or never where the simulation ends: whoever waits here is cancelled."""
        if self.over.is_set():
            await asyncio.Event().wait()

    async def sleep(self, seconds: float) -> None:
        """Wait so many ``seconds`` at the simulation's speed, or until it ends."""
        if self.speed and seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds / self.speed):
                    await self.over.wait()


class Player:
    """The life of ``agent`` on a ``stage``."""

    def __init__(self, stage: Stage, agent: Agent) -> None:
        self.id = agent.id
        self._stage = stage
        self._agent = agent
        self._toolbox = stage.workspace.tools(agent.id)
        self._actor = stage.scenario.actor_of(agent.id)
        self._tools = [self._counted(tool) for tool in agent_tools(self._toolbox)]
        self._system = self._toolbox.system_prompt()
        self._rests = asyncio.Event()
        self._rests.set()
        self._session: Session | None = None
        self._model: ScriptedModel | None = None
        self._agents: dict[tuple[tuple[str, ...], bool], ChatAgent] = {}
        self._failure: Exception | None = None
        self._is_ended = False

    async def comes_to_rest(self) -> None:
        """Wait while it does something that should not be cut short, as the words of its model may be."""
        if self._session is None or self._session.state.status != "paused":
            await self._rests.wait()

    async def live(self) -> None:
        """Take up what was left of an earlier day, then play one routine after the other until the end."""
        number = await self._take_up()
        start = Random(f"{self._stage.seed}:{self.id}:start")
        await self._stage.sleep(start.uniform(0.0, 1.5))
        while not self._stage.over.is_set() and not self._is_ended:
            name = self._next_routine(number)
            if not name:
                await self._wait_for_turn()
                continue
            state = await self._begin(name, number)
            number += 1
            if self._stage.queue is not None:
                self._stage.queue.end(self.id)
            if state.status in ("cancelled", "error"):
                await self._stage.sleep(_REST)

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

    async def _wait_for_turn(self) -> None:
        if self._stage.queue is None or not self._stage.speed:
            await self._stage.over.wait()
        await self._stage.sleep(1.0)

    async def _begin(self, name: str, number: int) -> AgentState:
        routine = self._stage.scenario.routines[name]
        play = self._play(number)
        task = play.task(name)
        agent = self._chat_agent(name, partial(play.script, name))
        async with self._stage.workspace.sessions.begin(
            self.id,
            agent,
            self._config(routine),
            messages=[UserMessage(content=task, author=self._agent.supervisor)],
            metadata={_ROUTINE: name, _NUMBER: number, _SEED: self._stage.seed},
        ) as session:
            return await self._run(session)

    async def _take_up(self) -> int:
        """Go on with the sessions that an earlier simulation left, except those that a person paused.
        Returns how many sessions the agent has had."""
        sessions = self._stage.workspace.sessions
        heads = sessions.list(self.id)
        for head in heads:
            if head.status in (*ENDED, "paused"):
                continue
            state = sessions.state(self.id, head.id)
            name = str(state.metadata.get(_ROUTINE))
            routine = self._stage.scenario.routines.get(name)
            if routine is None:
                continue
            if self._stage.queue is not None and head.status == "waiting_for_human_input":
                self._stage.queue.hold(self.id)
            play = self._play(_whole(state.metadata.get(_NUMBER)), _whole(state.metadata.get(_SEED)))
            agent = self._chat_agent(name, partial(play.script, name))
            async with sessions.resume(self.id, head.id, agent, self._config(routine)) as session:
                await self._run(session)
        if self._stage.queue is not None:
            self._stage.queue.end(self.id)
        return len(heads)

    def _play(self, number: int, seed: int | None = None) -> Play:
        stage = self._stage
        return Play(
            stage.scenario,
            self._agent,
            stage.team,
            seed=stage.seed if seed is None else seed,
            number=number,
            language=stage.language,
            now=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    async def _run(self, session: Session) -> AgentState:
        self._session = session
        try:
            state = await session.run()
            while _is_at_limit(state) and await self._is_let_go_on(session):
                state = await session.run()
        finally:
            self._session = None
            self._rests.set()
        self._stage.statistics.count_session(state.spent.tokens)
        if state.status == "error" and not _is_at_limit(state):
            raise self._failure or RuntimeError(state.error.message if state.error else "")
        if self._model is not None and self._model.move is not None and self._model.move.abandoned:
            self._stage.statistics.count_abandoned()
        return state

    async def _is_let_go_on(self, session: Session) -> bool:
        """Wait for a person's word to a session that has reached its limit; False if there is none."""
        if self._stage.queue is None:
            return False
        self._rests.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._stage.scenario.answer_within, _MOST_AT_LIMIT)):
                await session.wait_for_control()
                return True
        return False

    def _chat_agent(self, name: str, start: Callable[[str], Script]) -> ChatAgent:
        scenario = self._stage.scenario
        self._model = ScriptedModel(start, speed=self._stage.speed, wait=self._wait)
        approve = scenario.routines[name].approve
        # Looking at buffers takes a thread's turn before each question.
        has_buffers = "open_buffer" in scenario.calls_in(name)
        if (approve, has_buffers) not in self._agents:
            self._agents[approve, has_buffers] = self._make_agent(approve, has_buffers)
        return self._agents[approve, has_buffers]

    def _make_agent(self, approve: tuple[str, ...], has_buffers: bool) -> ChatAgent:
        policies: dict[str, Policy] = dict.fromkeys(approve, "ask")
        buffers = _CountedTools(BufferTools(self._toolbox), self._counted) if has_buffers else None
        return ChatAgent(
            self._tools,
            model_runtime=self._answers,
            system=self._system,
            model="simulated",
            policies=Policies(tools=policies),
            asks=True,
            live=buffers,
            language=self._toolbox.language,
        )

    def _config(self, routine: Routine) -> RuntimeConfig:
        return RuntimeConfig(
            limits=Limits(steps=routine.limit.steps or None, tokens=routine.limit.tokens or None),
            ask_timeout=self._stage.scenario.answer_within,
            language=self._toolbox.language,
            on_event=self._hears,
            inline=True,
        )

    def _hears(self, event: Event) -> None:
        if event.type in _RESTS:
            self._rests.set()
        elif event.type == "llm_result":
            self._rests.clear()

    def _counted(self, tool: AgentTool) -> AgentTool:
        """The tool, counted; called on the event loop where it does not wait: that costs no other thread's
        turn."""
        waits = tool.name in _MAY_WAIT or tool.name.startswith("whiteboard_")

        async def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
            if self._rests.is_set():
                # It was decided on before a wait for a person, or before an earlier end.
                await self._stage.goes_on()
                self._rests.clear()
            try:
                result = await run_tool(tool, arguments, origin) if waits else tool.run(arguments, origin)
            except Exception as error:
                if not isinstance(error, ApprovalOutdated):
                    self._failure = ToolBroke(f"{tool.name}: {type(error).__name__}: {error}")
                raise
            if isinstance(result, Mapping):
                self._count(tool.name, arguments, result)
            return cast("Json", result)

        return replace(tool, run=run)

    def _count(self, tool: str, arguments: Mapping[str, Json], result: Mapping[str, Json]) -> None:
        move = self._model.move if self._model is not None else None
        attempt = move.attempt if move is not None and move.tool == tool else 0
        self._stage.statistics.count_call(CallRecord.of(tool, arguments, attempt, result))
        self._is_ended = self._is_ended or result.get("error") == "agent_ended"

    async def _answers(self, payload: ModelPayload) -> AsyncIterator[ModelChunk]:
        """What its model says; nothing more once the simulation ends."""
        await self._stage.goes_on()
        if self._model is None:
            raise RuntimeError("there is no session")
        model = self._model

        async def decide(given: ModelPayload) -> Reply:
            try:
                if self._failure is not None:
                    raise self._failure
                reply = await model(given)
            except Exception as error:
                self._failure = error
                raise
            await self._stage.goes_on()
            return reply

        async with aclosing(SimulatedModel(decide)(payload)) as chunks:
            async for chunk in chunks:
                await self._stage.goes_on()
                yield chunk

    async def _wait(self, wait: Wait) -> bool:
        spec, speed = wait.spec, self._stage.speed
        seconds = max(spec.most / speed, _LEAST_WAIT) if speed else max(spec.most / 20, _LEAST_WAIT)
        return await self._stage.follower.wait_for(spec.zone, wait.path, spec.version, seconds)


class _CountedTools:
    """Tools that come and go, each counted when it is called."""

    def __init__(self, live: LiveTools, counted: Callable[[AgentTool], AgentTool]) -> None:
        self._live = live
        self._counted = counted

    def snapshot(self) -> LiveToolsSnapshot:
        snapshot = self._live.snapshot()
        return snapshot._replace(tools=tuple(map(self._counted, snapshot.tools)))

    def find(self, name: str) -> AgentTool | None:
        found = self._live.find(name)
        return None if found is None else self._counted(found)

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        return self._live.condense(tool, content, is_newest=is_newest)


def _is_at_limit(state: AgentState) -> bool:
    return state.status == "error" and state.error is not None and state.error.code == LimitReached.code


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
