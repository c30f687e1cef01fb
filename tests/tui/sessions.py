"""Agents that run beside the dashboard, in the same event loop, with scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from runtime.weather import Chunk, Model, call, calling
from watchroom import Json, Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.requests.rows import Policy
from watchroom.features.sessions.runtime import AgentState, ChatAgent, Policies, RuntimeConfig, Session

PATIENCE = 20.0


class Running:
    """A running session, and its model."""

    def __init__(self, session: Session, model: Model, task: asyncio.Task[AgentState]) -> None:
        self.session = session
        self.model = model
        self._task = task

    async def ended(self) -> AgentState:
        """Return the state at the end of the session."""
        return await asyncio.wait_for(asyncio.shield(self._task), PATIENCE)


@asynccontextmanager
async def running(
    workspace: Workspace,
    agent: str,
    *answers: Sequence[Chunk] | Exception,
    task: str = "Do your work.",
    ask: Sequence[str] = (),
    stay: bool = False,
    patience: float | None = None,
) -> AsyncIterator[Running]:
    """Run a session of ``agent``. Calls of the tools ``ask`` need a person's approval."""
    policies: dict[str, Policy] = dict.fromkeys(ask, "ask")
    model = Model(*answers)
    chat = ChatAgent(
        agent_tools(workspace.tools(agent)),
        model_runtime=model,
        policies=Policies(tools=policies),
        asks=True,
    )
    config = RuntimeConfig(ask_timeout=patience)
    messages = [{"role": "user", "content": task}]
    async with workspace.sessions.begin(agent, chat, config, messages=messages) as session:
        work = asyncio.create_task(session.run(stay=stay))
        try:
            yield Running(session, model, work)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def says(text: str) -> list[Chunk]:
    return [{"content": text}]


def asks(question: str, *options: str, several: bool = False) -> list[Chunk]:
    """Return an answer that asks a person."""
    offered: dict[str, Json] = {"options": list(options), "several": several} if options else {}
    return calling(call("ask_person", "call_1", question=question, **offered))
