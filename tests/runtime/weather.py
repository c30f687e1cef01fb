"""The conversation of RUN: a question about the weather, a tool that a person approves, an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from watchroom import Json
from watchroom.features.sessions.runtime import (
    AgentTool,
    CallOrigin,
    ChatAgent,
    Function,
    ModelPayload,
    Policies,
    ToolCall,
)

QUESTION = "What's the weather in Beijing?"
ANSWER = "It is 25°C and sunny in Beijing."
Chunk = Mapping[str, object]


def call(name: str = "get_weather", call_id: str = "call_1", **arguments: Json) -> ToolCall:
    return ToolCall(id=call_id, function=Function(name=name, arguments=json.dumps(arguments)))


def calling(*calls: ToolCall, content: str = "") -> list[Chunk]:
    """The chunks of an answer that calls tools."""
    return [{"content": content}, {"tool_calls": [each.model_dump() for each in calls]}]


class Model:
    """A model that gives prepared answers, one a request, and keeps the requests."""

    def __init__(self, *answers: Sequence[Chunk] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[ModelPayload] = []

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Chunk]:
        self.asked.append(payload)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        for chunk in answer:
            yield chunk


class Calls:
    """A tool that gives one result and keeps what it was called with."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.given: list[dict[str, Json]] = []

    def __call__(self, arguments: Mapping[str, Json]) -> Json:
        self.given.append(dict(arguments))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result  # type: ignore[no-any-return]


def definition(name: str) -> Mapping[str, Json]:
    """Of a tool that takes anything."""
    schema: Json = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "Works.", "parameters": schema}}


def offered(tools: Mapping[str, Any]) -> dict[str, AgentTool]:
    """Tools as an agent has them, from functions of their arguments, or from tools without a definition."""
    return {name: _offered(name, tool) for name, tool in tools.items()}


def _offered(name: str, tool: Any) -> AgentTool:
    if isinstance(tool, AgentTool):
        return replace(tool, definition=tool.definition or definition(name))

    def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Any:
        return tool(arguments)

    return AgentTool(name, run, definition(name))


def weather_model() -> Model:
    return Model(
        calling(call(city="Beijing"), content="I will look it up."),
        [{"content": "It is 25°C "}, {"content": "and sunny in Beijing."}],
    )


def weather_agent(model: Model, tool: Calls) -> ChatAgent:
    """Asks before it calls its tool."""

    def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return tool(arguments)

    return ChatAgent(
        [AgentTool("get_weather", run, definition("get_weather"), repeatable=True)],
        model_runtime=model,
        policies=Policies(tools={"get_weather": "ask"}),
    )
