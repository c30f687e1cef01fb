"""Agents that decide as they are told, and models that speak when they are let."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from watchroom import Workspace
from watchroom.features.requests.rows import Request
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    Instruction,
    ModelPayload,
    ModelRuntime,
    Session,
    StepResult,
    Tool,
)


class Scripted:
    """An agent that makes these decisions, one a step: instructions, mappings, or errors to raise."""

    def __init__(
        self,
        *decisions: object,
        tools: Mapping[str, Tool] | None = None,
        executors: Mapping[str, Any] | None = None,
        model_runtime: ModelRuntime | None = None,
    ) -> None:
        self.decisions = list(decisions)
        self.seen: list[AgentState] = []
        self.tools = tools or {}
        self.executors = executors or {}
        self.model_runtime = model_runtime

    async def runner(self, state: AgentState) -> Instruction:
        self.seen.append(state)
        decision = self.decisions.pop(0)
        if isinstance(decision, BaseException):
            raise decision
        return decision  # type: ignore[return-value]  # it may be anything, as people's agents may


class Speaker:
    """A model that says ``first`` and then nothing more until it is closed."""

    def __init__(self, first: str = "Well, ") -> None:
        self.first = first
        self.speaks = asyncio.Event()
        self.is_closed = False

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        try:
            yield {"content": self.first}
            self.speaks.set()
            await asyncio.Event().wait()
        finally:
            self.is_closed = True


def initial(**given: Any) -> AgentState:
    return AgentRuntime.create_initial_state(**{"session_id": "s1", **given})


def kinds(result: StepResult) -> list[str]:
    return [event.type for event in result.events]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until ``holds``: what it looks at, other threads change."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.005)


async def status_is(session: Session, status: str) -> None:
    await until(lambda: session.state.status == status)


@asynccontextmanager
async def at_work(session: Session, *, stay: bool = False) -> AsyncIterator[asyncio.Task[AgentState]]:
    """The session running beside the test; what is left of it afterwards is cancelled."""
    task = asyncio.create_task(session.run(stay=stay))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def open_request(workspace: Workspace, path: str) -> tuple[int, Request]:
    """The number of the row of the request at ``path``, and what it asks."""
    row = workspace.journal.version("request", path, 1)
    assert row is not None
    return row.seq, workspace.requests.find(row.seq)


def say(workspace: Workspace, tool: str, by: str = "dana", **arguments: Any) -> dict[str, Any]:
    """Have a person call a tool."""
    return dict(workspace.tools_for_human(by).dispatch_tool_call(tool, arguments))
