"""Where a session stops: at its limits, and in a state that waits, is held or has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, initial
from runtime.steps import raw
from runtime.weather import Calls, Model
from watchroom import Json
from watchroom.runtime import (
    AgentRuntime,
    AgentState,
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    Limits,
    ModelPayload,
    RuntimeConfig,
)


async def stopped(limits: Limits, *decisions: object, **given: Any) -> AgentState:
    runtime = AgentRuntime(Scripted(*decisions, **given), RuntimeConfig(limits=limits))
    state = initial()
    for _ in range(20):
        state = (await runtime.step(state)).new_state
        if state.error is not None and state.error.code == "limit_reached":
            return state
    raise AssertionError("no limit was reached")


async def test_a_limit_of_steps() -> None:
    steps = [CallTool(tool_call=raw("{}", call_id=f"c{n}")) for n in range(9)]
    tool = Calls()
    state = await stopped(Limits(steps=3), *steps, tools={"tool": tool})
    assert len(tool.given) == 3
    assert state.status == "error"


async def test_a_limit_of_tokens() -> None:
    answer = [{"content": "x", "usage": {"input_tokens": 40, "output_tokens": 10}}]
    model = Model(*[answer] * 9)
    await stopped(Limits(tokens=100), *[CallLlm()] * 9, model_runtime=model)
    assert len(model.asked) == 2


async def test_a_limit_of_errors_in_a_row() -> None:
    steps = [CallTool(tool_call=raw("{}", call_id=f"c{n}")) for n in range(9)]
    tool = Calls(ValueError("never works"))
    await stopped(Limits(errors=3), *steps, tools={"tool": tool})
    assert len(tool.given) == 3


async def test_errors_that_are_not_in_a_row_are_borne() -> None:
    steps = [CallTool(tool_call=raw("{}", n, f"c{i}")) for i, n in enumerate(["bad", "good"] * 4)]
    tools = {"bad": Calls(ValueError()), "good": Calls()}
    runtime = AgentRuntime(Scripted(*steps, tools=tools), RuntimeConfig(limits=Limits(errors=2)))
    state = initial()
    for _ in steps:
        state = (await runtime.step(state)).new_state
    assert (state.status, state.errors_in_a_row) == ("running", 0)


async def test_a_model_that_hangs() -> None:
    async def silent(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        await asyncio.Event().wait()
        yield {}

    state = await stopped(Limits(seconds=0.01), CallLlm(), model_runtime=silent)
    assert state.spent.seconds >= 0.01


async def test_a_tool_that_hangs() -> None:
    async def silent(arguments: Mapping[str, Json]) -> Json:
        return await asyncio.Event().wait()

    state = await stopped(Limits(seconds=0.01), CallTool(tool_call=raw("{}")), tools={"tool": silent})
    assert state.messages == ()


async def test_an_agent_that_hangs() -> None:
    class Pondering(Scripted):
        async def runner(self, state: AgentState) -> Instruction:
            await asyncio.Event().wait()
            return Finish()

    runtime = AgentRuntime(Pondering(), RuntimeConfig(limits=Limits(seconds=0.01)))
    error = (await runtime.step(initial())).new_state.error
    assert error is not None
    assert error.code == "limit_reached"


async def test_a_time_that_is_up_for_another_reason_is_no_limit() -> None:
    runtime = AgentRuntime(Scripted(TimeoutError("of my own")), RuntimeConfig(limits=Limits(seconds=60)))
    error = (await runtime.step(initial())).new_state.error
    assert error is not None
    assert (error.code, "of my own" in error.message) == ("agent_failed", True)


async def test_a_state_that_waits_or_is_held_or_ended_stays_as_it_is() -> None:
    runtime = AgentRuntime(Scripted())
    for status in ("waiting_for_human_input", "paused", "cancelled"):
        state = initial().but(status=status)
        result = await runtime.step(state)
        assert (result.events, result.new_state) == ((), state)


@pytest.mark.parametrize("status", ["paused", "cancelled"])
async def test_an_approved_call_does_not_wake_what_is_held_or_ended(status: str) -> None:
    tool = Calls()
    state = initial().but(status=status)
    result = await AgentRuntime(Scripted(tools={"tool": tool})).step(state, raw("{}"))
    assert (result.events, result.new_state) == ((), state)
    assert tool.given == []
