"""Where a session stops: at its limits, and in a state that waits, is held or has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, at_work, initial, say, status_is
from runtime.steps import raw
from runtime.weather import Calls, Model, call, calling, offered
from runtime.working import SAYS
from watchroom import Json, Workspace
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    CallLlm,
    CallTool,
    ChatAgent,
    Finish,
    Instruction,
    Limits,
    ModelPayload,
    RuntimeConfig,
)
from watchroom.kernel.call_context import CallContext


async def stopped(limits: Limits, *decisions: object, **given: Any) -> AgentState:
    runtime = AgentRuntime(Scripted(*decisions, **given), RuntimeConfig(limits=limits))
    state = initial()
    for _ in range(20):
        state = (await runtime.step(state)).new_state
        if state.error is not None and state.error.code == "limit_reached":
            return state
    raise AssertionError("no limit was reached")


async def run_to_the_end(runtime: AgentRuntime) -> AgentState:
    state = initial(messages=[{"role": "user", "content": "Hello"}])
    while state.status not in ("done", "error"):
        state = (await runtime.step(state)).new_state
    return state


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


FAILS: Json = {"success": False, "error": "file_not_found", "message": "There is none."}


@pytest.mark.parametrize("result", [FAILS, ValueError("never works")])
async def test_a_tool_that_fails_in_turn_after_turn_stops_the_session(result: Any) -> None:
    tool = Calls(result)
    model = Model(*[calling(call("tool", f"c{turn}")) for turn in range(300)], SAYS)
    runtime = AgentRuntime(ChatAgent(offered({"tool": tool}), model_runtime=model))
    state = await run_to_the_end(runtime)
    assert (state.status, len(tool.given)) == ("error", 5)
    assert state.error is not None
    assert state.error.message == "The session stopped at its limit: 5 failed turns in a row."


async def test_calls_of_one_turn_fail_together_and_a_success_begins_anew() -> None:
    tools = {"bad": Calls(FAILS), "good": Calls({"success": True})}
    model = Model(
        calling(*(call("bad", f"a{n}") for n in range(9))),
        calling(call("bad", "b1"), call("good", "b2")),
        *(calling(call("bad", f"c{n}")) for n in range(9)),
    )
    state = await run_to_the_end(AgentRuntime(ChatAgent(offered(tools), model_runtime=model)))
    assert (state.status, len(tools["bad"].given)) == ("error", 9 + 1 + 5)


async def test_steps_have_a_limit_by_default() -> None:
    model = Model(*[calling(call("tool", f"c{turn}")) for turn in range(600)], SAYS)
    agent = ChatAgent(offered({"tool": Calls({"success": True})}), model_runtime=model)
    state = await run_to_the_end(AgentRuntime(agent))
    assert (state.status, len(model.asked)) == ("error", 500)
    assert state.error is not None
    assert "1000 steps (the default" in state.error.message


async def test_a_person_lets_a_session_take_as_many_steps_again(workspace: Workspace) -> None:
    model = Model(*[calling(call("tool", f"c{turn}")) for turn in range(5)], SAYS)
    agent = ChatAgent(offered({"tool": Calls({"success": True})}), model_runtime=model)
    config = RuntimeConfig(limits=Limits(steps=6))
    async with workspace.sessions.begin("alice", agent, config) as session:
        state = await session.run()
        assert (state.status, len(model.asked)) == ("error", 3)
        head = workspace.journal.head("session", session.path)
        assert head is not None
        assert head.detail["error"] == "limit_reached"
        say(workspace, "resume_agent", agent_id="alice")
        async with at_work(session, stay=True):
            await status_is(session, "done")


@pytest.mark.parametrize(
    "word",
    [
        ("resume_agent", {"agent_id": "alice"}),
        ("resume_agent", {"agent_id": "alice", "session_id": "s1"}),
        ("send_message", {"to": "alice", "payload": {"text": "Go on."}}),
    ],
    ids=["agent", "session", "message"],
)
async def test_a_person_lets_a_session_that_no_process_runs_take_as_many_steps_again(
    workspace: Workspace, word: tuple[str, dict[str, Any]]
) -> None:
    model = Model(*[calling(call("tool", f"c{turn}")) for turn in range(9)])
    agent = ChatAgent(offered({"tool": Calls({"success": True})}), model_runtime=model)
    config = RuntimeConfig(limits=Limits(steps=4))
    async with workspace.sessions.begin("alice", agent, config, session_id="s1") as session:
        assert (await session.run()).status == "error"
    assert len(model.asked) == 2
    assert say(workspace, word[0], **word[1])["success"]
    async with workspace.sessions.resume("alice", "s1", agent, config) as session:
        assert (await session.run()).status == "error"
    assert len(model.asked) == 4
    # It counts once.
    async with workspace.sessions.resume("alice", "s1", agent, config) as session:
        assert (await session.run()).status == "error"
    assert len(model.asked) == 4


async def test_a_word_of_another_agent_grants_no_steps(workspace: Workspace) -> None:
    model = Model(*[calling(call("tool", f"c{turn}")) for turn in range(9)])
    agent = ChatAgent(offered({"tool": Calls({"success": True})}), model_runtime=model)
    config = RuntimeConfig(limits=Limits(steps=4))
    async with workspace.sessions.begin("alice", agent, config, session_id="s1") as session:
        await session.run()
    workspace.session_zone.control(CallContext("bob", "send_message"), "alice", None, "Go on.")
    async with workspace.sessions.resume("alice", "s1", agent, config) as session:
        assert (await session.run()).status == "error"
    assert len(model.asked) == 2


async def test_tokens_that_nobody_counts_are_estimated_and_told_so() -> None:
    model = Model(*(calling(call("tool", f"c{n}", text="x" * 400)) for n in range(30)))
    tool = Calls({"success": True})
    runtime = AgentRuntime(
        ChatAgent(offered({"tool": tool}), model_runtime=model), RuntimeConfig(limits=Limits(tokens=500))
    )
    state = await run_to_the_end(runtime)
    assert 2 <= len(model.asked) <= 4
    assert state.spent.estimated_tokens == state.spent.tokens >= 500
    assert state.error is not None
    assert "500 tokens (estimated" in state.error.message


async def test_what_a_provider_counts_is_not_estimated() -> None:
    model = Model([{"content": "x", "usage": {"input_tokens": 4, "output_tokens": 1}}])
    state = await run_to_the_end(AgentRuntime(ChatAgent(model_runtime=model)))
    assert (state.spent.tokens, state.spent.estimated_tokens) == (5, 0)


async def test_an_estimate_stands_in_the_rows_and_on_the_screen(workspace: Workspace) -> None:
    agent = ChatAgent(model_runtime=Model(SAYS))
    async with workspace.sessions.begin("alice", agent) as session:
        state = await session.run()
    head = workspace.journal.head("session", session.path)
    assert head is not None
    assert head.detail["estimated"] == state.spent.tokens > 0


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
        state = initial().with_changes(status=status)
        result = await runtime.step(state)
        assert (result.events, result.new_state) == ((), state)


@pytest.mark.parametrize("status", ["paused", "cancelled"])
async def test_an_approved_call_does_not_wake_what_is_held_or_ended(status: str) -> None:
    tool = Calls()
    state = initial().with_changes(status=status)
    result = await AgentRuntime(Scripted(tools={"tool": tool})).step(state, raw("{}"))
    assert (result.events, result.new_state) == ((), state)
    assert tool.given == []
