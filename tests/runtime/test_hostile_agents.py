"""Whatever agents decide and executors give, a step ends with events and a whole state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.steps import raw
from watchroom.features.requests.rows import Option
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    AgentTool,
    CallLlm,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
)


@pytest.mark.parametrize(
    "decision",
    [
        None,
        "finish",
        7,
        {},
        {"type": "dance"},
        {"type": "call_tool"},
        {"type": "request_human_approve", "pending_tools_calling": []},
        {"type": "request_human_select", "options": []},
        Finish.model_construct(type="dance"),
        Finish.model_construct(type=["finish"]),
        Finish.model_construct(type=5),
        type,
    ],
)
async def test_what_is_no_instruction_is_an_error_event(decision: Any) -> None:
    result = await AgentRuntime(Scripted(decision)).step(initial())
    assert kinds(result) == ["error"]
    assert result.new_state.status == "error"
    assert result.new_state.error is not None
    assert result.new_state.error.code == "invalid_instruction"
    assert result.instruction == "agent"


@pytest.mark.parametrize("given", [None, (), {"events": []}, AgentState])
async def test_an_executor_that_gives_no_result_is_an_error_event(given: Any) -> None:
    async def forgetful(instruction: Instruction, state: AgentState) -> Any:
        return given

    result = await AgentRuntime(Scripted(Finish(), executors={"finish": forgetful})).step(initial())
    assert kinds(result) == ["error"]
    assert result.new_state.error is not None
    assert result.new_state.error.code == "invalid_instruction"


@pytest.mark.parametrize("error", [asyncio.CancelledError(), TimeoutError(), RuntimeError()])
async def test_an_agent_may_raise_anything(error: BaseException) -> None:
    result = await AgentRuntime(Scripted(error)).step(initial())
    assert kinds(result) == ["error"]
    assert result.new_state.error is not None
    assert result.new_state.error.code == "agent_failed"


@pytest.mark.parametrize(
    "kind",
    [
        "call_llm",
        "call_tool",
        "finish",
        "request_human_approve",
        "request_human_prompt",
        "request_human_select",
    ],
)
async def test_an_executor_refuses_the_instruction_of_another(kind: str) -> None:
    runtime = AgentRuntime(Scripted())
    other: Instruction = CallLlm() if kind == "finish" else Finish()
    with pytest.raises(TypeError, match=other.type):
        await runtime.executors[kind](other, initial())


async def test_a_mapping_is_an_instruction_too() -> None:
    result = await AgentRuntime(Scripted({"type": "finish", "reason": "enough"})).step(initial())
    assert (result.instruction, result.new_state.status) == ("finish", "done")


async def test_a_runner_need_not_be_asynchronous() -> None:
    class Plain:
        tools: Mapping[str, AgentTool] = {}

        def runner(self, state: AgentState) -> Instruction:
            return Finish(reason="at once")

    assert (await AgentRuntime(Plain()).step(initial())).new_state.status == "done"


async def test_several_things_are_asked_with_the_time_that_there_is() -> None:
    decisions = (
        RequestHumanApprove(pending_tools_calling=(raw("{}"),), timeout=5),
        RequestHumanPrompt(prompt="?", timeout=None),
        RequestHumanSelect(options=(Option("A", "a"),), timeout=0),
    )
    given = []
    for decision in decisions:
        runtime = AgentRuntime(Scripted(decision), RuntimeConfig(ask_timeout=3600))
        asked = (await runtime.step(initial())).new_state.asked
        assert asked is not None
        assert asked.expires is not None
        given.append(asked.expires)
    assert given[2] < given[0] < given[1]
