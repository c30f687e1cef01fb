"""``on_event`` is called with each event once."""

from __future__ import annotations

from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.steps import raw, told, with_open
from runtime.weather import Calls, Model
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    CallLlm,
    CallTool,
    Finish,
    Limits,
    RequestHumanPrompt,
    RuntimeConfig,
    StepResult,
)
from watchroom.features.sessions.runtime.state import Event


async def heard(agent: Any, state: AgentState, **config: Any) -> tuple[list[Event], StepResult]:
    events: list[Event] = []
    runtime = AgentRuntime(agent, RuntimeConfig(on_event=events.append, **config))
    return events, await runtime.step(state)


@pytest.mark.parametrize(
    "agent",
    [
        Scripted(Finish()),
        Scripted(ValueError()),
        Scripted(CallLlm(), model_runtime=Model([{"content": "a"}, {"content": "b"}])),
        Scripted(CallLlm(), model_runtime=Model([{"content": "a"}, {"content": 7}])),
        Scripted(CallTool(tool_call=raw("{}")), tools={"tool": Calls(1)}),
        Scripted(CallTool(tool_call=raw("{}")), tools={"tool": Calls(ValueError())}),
        Scripted(RequestHumanPrompt(prompt="?")),
    ],
)
async def test_each_event_is_heard_once(agent: Any) -> None:
    events, result = await heard(agent, initial())
    assert [event.type for event in events] == kinds(result)


async def test_a_limit_is_heard() -> None:
    events, result = await heard(Scripted(), initial(), limits=Limits(steps=0))
    assert events == list(result.events) != []


async def test_a_listener_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def deaf(event: Event) -> None:
        raise ValueError("cannot hear")

    agent = Scripted(CallTool(tool_call=raw("{}")), tools={"tool": Calls(1)})
    result = await AgentRuntime(agent, RuntimeConfig(on_event=deaf)).step(with_open(raw("{}")))
    assert told(result) == 1
    assert "cannot hear" in caplog.text
