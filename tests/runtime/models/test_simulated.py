"""The simulated model: what its script decides, streamed as a model's answer is."""

from __future__ import annotations

import asyncio
import json

from watchroom.features.sessions.runtime import ChatAgent, ModelPayload, RuntimeConfig, UserMessage, tool
from watchroom.features.sessions.runtime.messages import AssistantMessage, Message
from watchroom.features.sessions.runtime.models import ModelChunk, Reply, SimulatedModel
from watchroom.features.sessions.runtime.runtime import AgentRuntime

LONG = "It is going to be a clear night over all of the valley."


async def chunks(reply: Reply, *messages: Message) -> list[ModelChunk]:
    model = SimulatedModel(lambda payload: reply)
    return [chunk async for chunk in model(ModelPayload(messages=messages))]


async def test_a_text_comes_in_pieces_of_whole_words() -> None:
    given = await chunks(Reply(LONG, speaks=0.3))
    pieces = [chunk.content for chunk in given if chunk.content]
    assert "".join(pieces) == LONG
    assert len(pieces) > 3
    assert all(piece.startswith(" ") for piece in pieces[1:])


async def test_chinese_comes_in_pieces_though_it_has_no_spaces() -> None:
    text = "先看看有哪些共享文件，再写下一版。"
    given = await chunks(Reply(text, speaks=0.3))
    assert "".join(chunk.content for chunk in given) == text
    assert len(given) > 3


async def test_without_time_to_speak_all_comes_at_once() -> None:
    (chunk,) = await chunks(Reply(LONG, (("look", {"where": "up"}),)))
    assert chunk.content == LONG
    assert chunk.finish_reason == "tool_calls"
    (call,) = chunk.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"where": "up"})


async def test_tokens_are_guessed_from_lengths() -> None:
    said = UserMessage(content="x" * 41), AssistantMessage(content="y" * 39)
    (chunk,) = await chunks(Reply("z" * 10), *said)
    assert chunk.usage is not None
    used = chunk.usage
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (10, 11, 3)
    assert chunk.finish_reason == "stop"


async def test_a_script_may_be_awaited_and_sees_what_was_said() -> None:
    seen: list[Message] = []

    async def decide(payload: ModelPayload) -> Reply:
        await asyncio.sleep(0)
        seen.extend(payload.messages)
        return Reply("Good.")

    said = UserMessage(content="How is it?")
    given = [chunk async for chunk in SimulatedModel(decide)(ModelPayload(messages=(said,)))]
    assert seen == [said]
    assert given[0].content == "Good."


async def test_an_answer_that_nobody_waits_for_ends() -> None:
    stream = SimulatedModel(lambda payload: Reply(LONG, thinks=1e9))(ModelPayload(messages=()))
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()


async def test_an_agent_runs_on_it() -> None:
    def decide(payload: ModelPayload) -> Reply:
        newest = payload.messages[-1]
        if newest.role == "tool":
            return Reply(f"I found {json.loads(newest.content)}.")
        return Reply("I look.", (("count", {}),))

    @tool
    def count() -> int:
        """How many there are."""
        return 7

    agent = ChatAgent([count], model_runtime=SimulatedModel(decide))
    runtime = AgentRuntime(agent, RuntimeConfig())
    state = runtime.create_initial_state(session_id="one", messages=[UserMessage(content="How many?")])
    while state.status != "done":
        state = (await runtime.step(state)).new_state
    assert [message.content for message in state.messages] == ["How many?", "I look.", "7", "I found 7."]
    assert state.spent.tokens > 0
