"""One agent on the runtime: takes its tasks up one after the other, each in a session of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from watchroom.model import ENDED, Json
from watchroom.rules.config import Agent
from watchroom.rules.requests import Policy
from watchroom.runtime import (
    AgentState,
    AgentTool,
    CallOrigin,
    ChatAgent,
    Limits,
    LiveTools,
    LiveToolsSnapshot,
    ModelPayload,
    Policies,
    RuntimeConfig,
    Session,
    Sessions,
    UserMessage,
)
from watchroom.runtime.executors.tool_executor import run_tool
from watchroom.runtime.models import ModelChunk, ModelRuntime, Reply, SimulatedModel
from watchroom.runtime.state import Event
from watchroom.simulation.mind import Mind
from watchroom.simulation.tally import Tally
from watchroom.simulation.turns import Turns
from watchroom.simulation.voice import Voice
from watchroom.simulation.work import life
from watchroom.toolbox import Toolbox
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools

_ASKS: Final = "asks"
"""Under this name a session remembers which of its tools a person has to approve."""
_RESTS: Final = frozenset(
    {"llm_start", "human_approve_required", "human_prompt_required", "human_select_required"}
)
"""With these events an agent begins to wait, for its model or for a person."""

_MOST_SOONER: Final = 0.1
"""So many seconds of what its steps took are made good in an agent's next pause: they set no pace."""

_MODEL: Final = "simulated"


class Workplace(Protocol):
    """Where agents work: a `Workspace`, as far as they need it."""

    @property
    def root(self) -> str: ...

    @property
    def sessions(self) -> Sessions: ...

    def tools(self, agent: str) -> Toolbox: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """What all agents of a simulation share. ``people_help``: agents take nothing back without people;
    ``turns`` to ask them are None where nobody is asked. ``over``: it ends."""

    workspace: Workplace
    team: list[Agent]
    seed: int
    speed: float
    tally: Tally
    over: asyncio.Event
    people_help: bool
    turns: Turns | None

    async def goes_on(self) -> None:
        """Returns at once, or never where the simulation ends: whoever waits here is cancelled."""
        if self.over.is_set():
            await asyncio.Event().wait()


class Player:
    """One agent of the team, on the event loop of the simulation."""

    def __init__(self, stage: Stage, agent: Agent, toolbox: Toolbox) -> None:
        self.id = agent.id
        self._stage = stage
        self._supervisor = agent.supervisor
        self._toolbox = toolbox
        self._voice = Voice(agent.id, stage.seed)
        self._agents: dict[tuple[str, ...], ChatAgent] = {}
        self._rests = asyncio.Event()
        self._rests.set()
        self._session: Session | None = None
        self._failure: Exception | None = None
        self._answered = 0.0
        self._speaks = SimulatedModel(self._decide)
        script = life(agent, stage.team, stage.seed, people_help=stage.people_help)
        self._mind = Mind(
            agent.id, script, self._voice, stage.tally, clock=_now, speed=stage.speed, turns=stage.turns
        )

    async def comes_to_rest(self) -> None:
        """Wait while it does something that should not be cut short, as the words of its model may be."""
        if self._session is None or self._session.state.status != "paused":
            await self._rests.wait()

    async def live(self) -> None:
        """Take up what was left of an earlier day, then one task after the other."""
        tools = [self._counted(tool) for tool in agent_tools(self._toolbox)]
        system = self._toolbox.system_prompt()
        await self._take_up(tools)
        while not self._stage.over.is_set():
            task, said = self._mind.opens()
            if task.asks not in self._agents:
                self._agents[task.asks] = self._agent(tools, self._answers, task.asks, system)
            async with self._stage.workspace.sessions.begin(
                self.id,
                self._agents[task.asks],
                self._config(),
                messages=[UserMessage(content=said, author=self._supervisor)],
                metadata={_ASKS: list(task.asks)},
            ) as session:
                state = await self._run(session)
            if state.status == "cancelled":
                self._mind.drops()

    async def _take_up(self, tools: list[AgentTool]) -> None:
        """Bring the sessions to an end that an earlier simulation left, except those that a person paused."""
        sessions = self._stage.workspace.sessions
        model = SimulatedModel(self._excuse)
        for head in await asyncio.to_thread(sessions.list, self.id):
            if head.status in (*ENDED, "paused"):
                continue
            if self._stage.turns is not None and head.status == "waiting_for_human_input":
                self._stage.turns.holds(self.id)
            state = await asyncio.to_thread(sessions.state, self.id, head.id)
            asks = state.metadata.get(_ASKS)
            agent = self._agent(tools, model, tuple(map(str, asks)) if isinstance(asks, list) else ())
            async with sessions.resume(self.id, head.id, agent, self._config()) as session:
                await self._run(session)
        if self._stage.turns is not None:
            self._stage.turns.ends(self.id)

    async def _run(self, session: Session) -> AgentState:
        self._session = session
        try:
            state = await session.run()
        finally:
            self._session = None
            self._rests.set()
        self._stage.tally.ended_session(state.spent.tokens)
        if state.status == "error":
            raise self._failure or RuntimeError(state.error.message if state.error else "")
        return state

    def _agent(
        self, tools: list[AgentTool], model: ModelRuntime, asks: tuple[str, ...], system: str = ""
    ) -> ChatAgent:
        policies: dict[str, Policy] = dict.fromkeys(asks, "ask")
        return ChatAgent(
            tools,
            model_runtime=model,
            system=system,
            model=_MODEL,
            policies=Policies(tools=policies),
            asks=True,
            live=_Counted(BufferTools(self._toolbox), self._counted),
            language=self._toolbox.language,
        )

    def _config(self) -> RuntimeConfig:
        patience = self._mind.patience
        return RuntimeConfig(
            limits=Limits(steps=None),
            ask_timeout=patience / self._stage.speed if self._stage.speed else patience,
            language=self._toolbox.language,
            on_event=self._hears,
        )

    def _hears(self, event: Event) -> None:
        if event.type in _RESTS:
            self._rests.set()
        elif event.type == "llm_result":
            self._rests.clear()
            self._answered = time.monotonic()

    def _counted(self, tool: AgentTool) -> AgentTool:
        async def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
            if self._rests.is_set():
                # It was decided on before a wait for a person, or before an earlier end.
                await self._stage.goes_on()
                self._rests.clear()
            call = self._mind.call
            result = await run_tool(tool, arguments, origin)
            if call is not None and isinstance(result, Mapping):
                self._stage.tally.called(call, result)
            return result

        return replace(tool, run=run)

    async def _answers(self, payload: ModelPayload) -> AsyncIterator[ModelChunk]:
        """What its model says; nothing more once the simulation ends."""
        async with aclosing(self._speaks(payload)) as chunks:
            async for chunk in chunks:
                await self._stage.goes_on()
                yield chunk

    async def _decide(self, payload: ModelPayload) -> Reply:
        await self._stage.goes_on()
        try:
            reply = self._mind.reply(payload.messages[1:])
        except Exception as error:
            self._failure = error
            raise
        return _sooner(reply, min(_MOST_SOONER, time.monotonic() - self._answered))

    async def _excuse(self, payload: ModelPayload) -> Reply:
        """The last word in a session that was cut off."""
        await self._stage.goes_on()
        return Reply(self._voice.say("people", "interrupted"))


class _Counted:
    """Tools that come and go, each counted when it is called."""

    def __init__(self, live: LiveTools, counted: Callable[[AgentTool], AgentTool]) -> None:
        self._live = live
        self._counted = counted

    def snapshot(self) -> LiveToolsSnapshot:
        look = self._live.snapshot()
        return look._replace(tools=tuple(map(self._counted, look.tools)))

    def find(self, name: str) -> AgentTool | None:
        found = self._live.find(name)
        return None if found is None else self._counted(found)

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        return self._live.condense(tool, content, is_newest=is_newest)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _sooner(reply: Reply, seconds: float) -> Reply:
    """The reply, so many seconds earlier, as far as it pauses."""
    thinks = max(0.0, reply.thinks - seconds)
    speaks = max(0.0, reply.speaks - (seconds - (reply.thinks - thinks)))
    return replace(reply, thinks=thinks, speaks=speaks)
