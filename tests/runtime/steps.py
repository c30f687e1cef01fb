"""One step of an agent at a time: what tests of steps share."""

from __future__ import annotations

import json
from typing import Any

from runtime.scripted import Scripted, initial
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    AssistantMessage,
    CallTool,
    Function,
    StepResult,
    ToolCall,
    ToolMessage,
)


def raw(arguments: str, name: str = "tool", call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, function=Function(name=name, arguments=arguments))


def with_open(*calls: ToolCall) -> AgentState:
    """A state whose model has just made these calls."""
    return initial().with_messages(AssistantMessage(tool_calls=calls))


async def result_of(tool: Any, asked: ToolCall | None = None) -> StepResult:
    asked = asked or raw("{}")
    agent = Scripted(CallTool(tool_call=asked), tools={"tool": tool})
    return await AgentRuntime(agent).step(with_open(asked))


def told(result: StepResult) -> Any:
    """What the model is told of the call."""
    last = result.new_state.messages[-1]
    assert isinstance(last, ToolMessage)
    assert result.new_state.open_calls == ()
    return json.loads(last.content)
