"""Agents at work in a workspace: what tests of sessions share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from runtime.scripted import open_request, status_is, until
from runtime.weather import Model, offered
from watchroom import Json, Workspace
from watchroom.features.sessions.runtime import (
    AgentState,
    AgentTool,
    AssistantMessage,
    CallOrigin,
    ChatAgent,
    Policies,
    Session,
    ToolMessage,
)

HELLO = ({"role": "user", "content": "Hello"},)
ASK = Policies(default="ask")
SAYS: Any = [{"content": "Done."}]


def chat(*answers: Any, tools: Mapping[str, Any] | None = None, **given: Any) -> ChatAgent:
    return ChatAgent(offered(tools or {}), model_runtime=Model(*answers), **given)


def results(state: AgentState) -> dict[str, Any]:
    """What the model was told of each call."""
    return {
        message.tool_call_id: json.loads(message.content)
        for message in state.messages
        if isinstance(message, ToolMessage)
    }


def is_whole(state: AgentState) -> bool:
    """Whether each call of the model has one result, and nothing stands between them."""
    expected: list[str] = []
    for message in state.messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in expected:
                return False
            expected.remove(message.tool_call_id)
        elif expected:
            return False
        elif isinstance(message, AssistantMessage):
            expected = [each.id for each in message.tool_calls]
    return not expected


class Held:
    """A tool that is at work until it is let go."""

    def __init__(self, result: Json = "finished") -> None:
        self.result = result
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.times = 0
        self.was_cancelled = False

    async def __call__(self, arguments: Mapping[str, Json]) -> Json:
        self.times += 1
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return self.result


def held_tool(held: Held, **hints: Any) -> AgentTool:
    async def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return await held(arguments)

    return AgentTool("work", run, {}, **hints)


async def asked_in(workspace: Workspace, session: Session) -> int:
    """The number of the request that the session waits for, once it is open."""
    await status_is(session, "waiting_for_human_input")
    path = f"{session.path}/{session.state.step_count}"
    await until(lambda: workspace.journal.version("request", path, 1) is not None)
    return open_request(workspace, path)[0]


def deliver(workspace: Workspace, session: Session) -> None:
    """What was said has arrived."""
    for mail in workspace.session_zone.controls(session.path, 0):
        session.deliver(mail)
