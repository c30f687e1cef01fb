"""The scenarios of RUN, each by its name, in the order in which the specification has them."""

from __future__ import annotations

from typing import Any

import pytest
from runtime.scripted import Scripted
from runtime.weather import ANSWER, QUESTION, Calls, Model, call, calling, weather_agent, weather_model
from watchroom.features.requests.rows import Option, decide_all
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    CallLlm,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    StepResult,
)
from watchroom.features.sessions.runtime.state import Event
from watchroom.features.sessions.runtime.transitions import apply_answer


def initial(**given: Any) -> AgentState:
    return AgentRuntime.create_initial_state(**{"session_id": "test-session", **given})


async def nothing(instruction: Instruction, state: AgentState) -> StepResult:
    return StepResult(events=(), new_state=state)


def kinds(result: StepResult) -> list[str]:
    return [event.type for event in result.events]


def test_a_runtime_without_a_configuration_has_all_built_in_executors() -> None:
    runtime = AgentRuntime(Scripted())
    assert set(runtime.executors) == {
        "call_llm",
        "call_tool",
        "finish",
        "request_human_approve",
        "request_human_prompt",
        "request_human_select",
    }


def test_executors_of_the_configuration_replace_built_in_ones() -> None:
    runtime = AgentRuntime(Scripted(), RuntimeConfig(executors={"finish": nothing}))
    assert runtime.executors["finish"] is nothing
    assert runtime.executors["call_llm"] is not nothing
    assert len(runtime.executors) == 6


def test_executors_of_the_agent_come_before_those_of_the_configuration() -> None:
    async def of_the_agent(instruction: Instruction, state: AgentState) -> StepResult:
        return StepResult(events=(), new_state=state)

    agent = Scripted(executors={"finish": of_the_agent})
    runtime = AgentRuntime(agent, RuntimeConfig(executors={"finish": nothing}))
    assert runtime.executors["finish"] is of_the_agent


async def test_an_approved_tool_call_is_run_at_once() -> None:
    tool = Calls({"result": "success"})
    agent = Scripted(tools={"test_tool": tool})
    result = await AgentRuntime(agent).step(initial(), call("test_tool", "call_123", input="test"))
    (event,) = result.events
    assert event.type == "tool_result"
    assert (event.id, event.result) == ("call_123", {"result": "success"})
    assert tool.given == [{"input": "test"}]
    assert [message.role for message in result.new_state.messages] == ["tool"]
    assert not agent.seen


async def test_an_agent_decides_and_an_executor_carries_it_out() -> None:
    agent = Scripted(Finish(reason="nothing to do"))
    result = await AgentRuntime(agent).step(initial())
    assert len(agent.seen) == len(result.events) == 1
    assert result.events[0] in result.new_state.events


async def test_an_error_of_the_agent_becomes_an_event() -> None:
    agent = Scripted(ValueError("Agent error"))
    result = await AgentRuntime(agent).step(initial())
    (event,) = result.events
    assert event.type == "error"
    assert "Agent error" in event.error.message
    assert result.new_state.status == "error"
    assert result.new_state.error == event.error


async def test_a_model_is_required() -> None:
    result = await AgentRuntime(Scripted(CallLlm())).step(initial())
    (event,) = result.events
    assert event.type == "error"
    assert "LLM provider is required" in event.error.message


async def test_a_streamed_answer_gives_an_event_for_each_piece() -> None:
    model = Model([{"content": "Hello"}, {"content": " world"}, {"content": "!"}])
    result = await AgentRuntime(Scripted(CallLlm()), RuntimeConfig(model_runtime=model)).step(initial())
    assert kinds(result) == ["llm_start", "llm_stream", "llm_stream", "llm_stream", "llm_result"]
    last = result.events[-1]
    assert last.type == "llm_result"
    assert (last.result.content, last.result.tool_calls) == ("Hello world!", ())
    assert result.new_state.messages[-1].content == "Hello world!"


async def test_tool_calls_in_an_answer_are_understood() -> None:
    wanted = call("test_tool", "call_123")
    model = Model(calling(wanted, content="I need to use a tool"))
    result = await AgentRuntime(Scripted(CallLlm()), RuntimeConfig(model_runtime=model)).step(initial())
    last = result.events[-1]
    assert last.type == "llm_result"
    assert last.result.content == "I need to use a tool"
    assert last.result.tool_calls == (wanted,)


async def test_the_result_of_a_tool_goes_into_the_messages() -> None:
    calculator = Calls({"result": 42})
    agent = Scripted(tools={"calculator": calculator})
    result = await AgentRuntime(agent).step(initial(), call("calculator", "call_123", expression="2+2"))
    assert calculator.given == [{"expression": "2+2"}]
    (event,) = result.events
    assert event.type == "tool_result"
    assert (event.id, event.result) == ("call_123", {"result": 42})
    assert result.new_state.messages[-1].model_dump() == {
        "role": "tool",
        "tool_call_id": "call_123",
        "content": '{"result":42}',
    }


async def test_an_unknown_tool_is_an_error_event() -> None:
    result = await AgentRuntime(Scripted()).step(initial(), call("unknown_tool", "call_123"))
    (event,) = result.events
    assert event.type == "error"
    assert "Tool not found: unknown_tool" in event.error.message


async def test_a_request_for_approval_waits_for_a_person() -> None:
    asked = call("test_tool", "call_123")
    agent = Scripted(RequestHumanApprove(pending_tools_calling=(asked,)))
    result = await AgentRuntime(agent).step(initial())
    required, pending = result.events
    assert required.type == "human_approve_required"
    assert required.session_id == "test-session"
    assert required.pending_tools_calling == (asked,)
    assert pending.type == "tool_pending"
    assert result.new_state.status == "waiting_for_human_input"
    assert result.new_state.pending_tools_calling == (asked,)


async def test_a_request_for_a_text_waits_for_a_person() -> None:
    agent = Scripted(RequestHumanPrompt(prompt="Please provide input", metadata={"key": "value"}))
    result = await AgentRuntime(agent).step(initial())
    (event,) = result.events
    assert event.type == "human_prompt_required"
    assert (event.prompt, event.metadata) == ("Please provide input", {"key": "value"})
    assert event.session_id == "test-session"
    assert result.new_state.status == "waiting_for_human_input"


async def test_a_request_for_a_choice_waits_for_a_person() -> None:
    options = (Option("Option 1", "opt1"), Option("Option 2", "opt2"))
    agent = Scripted(RequestHumanSelect(prompt="Choose an option", options=options, multi=False))
    result = await AgentRuntime(agent).step(initial())
    (event,) = result.events
    assert event.type == "human_select_required"
    assert (event.prompt, event.options, event.multi) == ("Choose an option", options, False)
    assert event.session_id == "test-session"
    assert result.new_state.status == "waiting_for_human_input"


async def test_finishing_ends_the_session() -> None:
    result = await AgentRuntime(Scripted(Finish(reason="Task completed"))).step(initial())
    (event,) = result.events
    assert event.type == "done"
    assert (event.reason, event.final_state.status) == ("Task completed", "done")
    assert result.new_state.status == "done"


def test_an_initial_state_without_messages() -> None:
    state = AgentRuntime.create_initial_state(session_id="test-session")
    assert (state.session_id, state.status, state.messages) == ("test-session", "idle", ())
    assert state.created_at == state.last_modified != ""


def test_an_initial_state_with_messages() -> None:
    state = initial(messages=[{"role": "user", "content": "Hello world"}])
    (message,) = state.messages
    assert (message.role, message.content) == ("user", "Hello world")


async def test_a_whole_conversation_with_a_tool_that_a_person_approves() -> None:
    tool = Calls({"temperature": 25, "condition": "sunny"})
    runtime = AgentRuntime(weather_agent(weather_model(), tool))
    first = await runtime.step(initial(messages=[{"role": "user", "content": QUESTION}]))
    assert first.new_state.status == "running"
    assert kinds(first)[-1] == "llm_result"

    second = await runtime.step(first.new_state)
    assert second.new_state.status == "waiting_for_human_input"
    (asked,) = second.new_state.pending_tools_calling

    third = await runtime.step(second.new_state, asked)
    assert tool.given == [{"city": "Beijing"}]
    assert third.new_state.status == "running"

    fourth = await runtime.step(third.new_state)
    last = fourth.events[-1]
    assert last.type == "llm_result"
    assert last.result.content == ANSWER

    fifth = await runtime.step(fourth.new_state)
    assert fifth.new_state.status == "done"
    assert [message.role for message in fifth.new_state.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


async def test_the_same_conversation_when_the_answer_is_given_as_an_answer() -> None:
    tool = Calls({"temperature": 25})
    runtime = AgentRuntime(weather_agent(weather_model(), tool))
    state = initial(messages=[{"role": "user", "content": QUESTION}])
    for _ in range(2):
        state = (await runtime.step(state)).new_state
    assert state.asked is not None
    state = apply_answer(state, decide_all(state.asked, approved=True), "human:dana").new_state
    while state.status == "running":
        state = (await runtime.step(state)).new_state
    assert (state.status, state.messages[-1].content) == ("done", ANSWER)
    assert tool.given == [{"city": "Beijing"}]


class TestRules:
    """RUN-errors."""

    async def test_priority_of_executors(self) -> None:
        async def of_the_agent(instruction: Instruction, state: AgentState) -> StepResult:
            return StepResult(events=(), new_state=state.with_changes(metadata={"by": "agent"}))

        async def of_the_configuration(instruction: Instruction, state: AgentState) -> StepResult:
            return StepResult(events=(), new_state=state.with_changes(metadata={"by": "configuration"}))

        config = RuntimeConfig(executors={"finish": of_the_configuration, "call_llm": of_the_configuration})
        agent = Scripted(Finish(), CallLlm(), executors={"finish": of_the_agent})
        runtime = AgentRuntime(agent, config)
        assert (await runtime.step(initial())).new_state.metadata == {"by": "agent"}
        assert (await runtime.step(initial())).new_state.metadata == {"by": "configuration"}

    async def test_events_are_kept_whatever_executor_made_them(self) -> None:
        async def forgetful(instruction: Instruction, state: AgentState) -> StepResult:
            told = await AgentRuntime(Scripted(Finish())).executors["finish"](instruction, state)
            return StepResult(events=told.events, new_state=state.with_changes(events=()))

        agent = Scripted(ValueError("one"), Finish(), Finish(), executors={"finish": forgetful})
        runtime = AgentRuntime(agent, RuntimeConfig())
        state = initial()
        seen: list[Event] = []
        for _ in range(3):
            result = await runtime.step(state)
            seen += result.events
            state = result.new_state
        assert list(state.events) == seen
        assert [event.type for event in seen] == ["error", "done", "done"]

    async def test_a_state_is_never_changed(self) -> None:
        runtime = AgentRuntime(weather_agent(weather_model(), Calls({})))
        state = initial(messages=[{"role": "user", "content": QUESTION}])
        for _ in range(2):
            before = state.model_dump_json()
            result = await runtime.step(state)
            assert state.model_dump_json() == before
            assert result.new_state is not state
            state = result.new_state
        with pytest.raises(ValueError, match="frozen"):
            state.status = "done"

    async def test_errors_of_executors_become_events(self) -> None:
        async def broken(instruction: Instruction, state: AgentState) -> StepResult:
            raise RuntimeError("no such luck")

        agent = Scripted(Finish(), executors={"finish": broken})
        result = await AgentRuntime(agent).step(initial())
        assert kinds(result) == ["error"]
        assert result.new_state.error is not None
        assert "no such luck" in result.new_state.error.message

    async def test_sessions_share_nothing(self) -> None:
        model = Model([{"content": "one"}], [{"content": "two"}])
        runtime = AgentRuntime(Scripted(CallLlm(), CallLlm()), RuntimeConfig(model_runtime=model))
        one, two = initial(session_id="one"), initial(session_id="two")
        after_one = (await runtime.step(one)).new_state
        after_two = (await runtime.step(two)).new_state
        assert (after_one.session_id, after_one.messages[-1].content) == ("one", "one")
        assert (after_two.session_id, after_two.messages[-1].content) == ("two", "two")
