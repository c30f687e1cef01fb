"""Whatever models say, a step ends with events and a whole state; what they cost is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.weather import Calls, Model, call, calling, offered
from watchroom import Json
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentTool,
    AssistantMessage,
    CallLlm,
    CallOrigin,
    ChatAgent,
    ModelPayload,
    Policies,
    RuntimeConfig,
)


@pytest.mark.parametrize("answer", [[], None, 7, iter([]), {"content": "whole"}])
async def test_a_model_that_is_no_async_generator_is_an_error_event(answer: Any) -> None:
    def plain(payload: ModelPayload) -> Any:
        return answer

    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=plain)).step(initial())
    assert kinds(result) == ["llm_start", "error"]
    assert result.new_state.messages == ()


async def test_a_model_that_is_a_coroutine_is_an_error_event() -> None:
    async def whole(payload: ModelPayload) -> str:
        return "whole"

    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=whole)).step(initial())  # type: ignore[arg-type]
    assert kinds(result) == ["llm_start", "error"]


async def test_a_model_that_raises_at_once_is_an_error_event() -> None:
    def broken(payload: ModelPayload) -> Any:
        raise OSError("unplugged")

    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=broken)).step(initial())
    assert kinds(result) == ["llm_start", "error"]
    assert result.new_state.error is not None
    assert "unplugged" in result.new_state.error.message


@pytest.mark.parametrize("chunk", [None, 7, "text", {"content": 7}, {"contents": "x"}, {"tool_calls": [{}]}])
async def test_a_chunk_that_is_none_is_an_error_event(chunk: Any) -> None:
    model = Model([{"content": "Hello"}, chunk])
    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())
    assert kinds(result)[-1] == "error"
    assert result.new_state.messages == ()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), RuntimeError()])
async def test_a_model_may_raise_anything(error: BaseException) -> None:
    async def model(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        yield {"content": "Hello"}
        raise error

    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())
    assert kinds(result) == ["llm_start", "llm_stream", "error"]
    assert result.new_state.messages == ()


async def test_what_a_broken_answer_cost_is_counted() -> None:
    async def model(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        yield {"content": "Hello", "usage": {"input_tokens": 10, "output_tokens": 1}}
        raise RuntimeError("cut off")

    state = (await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())).new_state
    assert (state.spent.model_calls, state.spent.tokens) == (1, 11)


async def test_usage_adds_up() -> None:
    model = Model(
        [{"content": "one"}, {"usage": {"input_tokens": 10, "output_tokens": 2}}],
        [{"content": "two", "usage": {"input_tokens": 20, "output_tokens": 3}}],
        [{"content": "three", "usage": {"input_tokens": 0, "output_tokens": 1}}],
    )
    runtime = AgentRuntime(Scripted(CallLlm(), CallLlm(), CallLlm(), model_runtime=model))
    state = initial()
    for _ in range(3):
        state = (await runtime.step(state)).new_state
    spent = state.spent
    assert (spent.input_tokens, spent.output_tokens, spent.tokens) == (30, 6, 36)
    assert (spent.model_calls, spent.tool_calls, state.step_count) == (3, 0, 3)


async def test_ids_that_a_model_uses_again_are_made_unique() -> None:
    model = Model(calling(call("tool", "call_0", n=1)), calling(call("tool", "call_0", n=2)))
    tool = Calls("ran")
    runtime = AgentRuntime(ChatAgent(offered({"tool": tool}), model_runtime=model))
    state = initial()
    for _ in range(4):
        state = (await runtime.step(state)).new_state
    ids = [
        each.id
        for message in state.messages
        if isinstance(message, AssistantMessage)
        for each in message.tool_calls
    ]
    assert len(set(ids)) == len(ids) == 2
    assert tool.given == [{"n": 1}, {"n": 2}]


async def test_without_a_payload_a_model_gets_what_it_needs() -> None:
    model = Model([{"content": "Hello"}])
    shape: dict[str, Json] = {"type": "function", "function": {"name": "tool"}}

    def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return None

    tools = {name: AgentTool(name, run, shape) for name in ("one", "two")}
    config = RuntimeConfig(model_runtime=model, policies=Policies(tools={"two": "never"}))
    state = initial(messages=[{"role": "user", "content": "Hi"}])
    await AgentRuntime(Scripted(CallLlm(), tools=tools), config).step(state)
    assert model.asked[0].messages == state.messages
    assert model.asked[0].tools == (shape,)
