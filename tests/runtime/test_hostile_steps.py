"""Whatever tools, models and agents do, a step ends with events and a whole state, and no call is run twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.weather import Calls, Model, call, calling
from watchroom import Json
from watchroom.requests import Option, approvals
from watchroom.runtime import (
    ASK_PERSON,
    AgentRuntime,
    AgentState,
    AgentTool,
    AssistantMessage,
    CallLlm,
    CallOrigin,
    CallTool,
    ChatAgent,
    Finish,
    Function,
    Instruction,
    Limits,
    ModelPayload,
    Policies,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    StepResult,
    ToolCall,
    ToolMessage,
)
from watchroom.runtime.answering import answered
from watchroom.runtime.events import Event


def raw(arguments: str, name: str = "tool", call_id: str = "c1") -> ToolCall:
    return ToolCall(id=call_id, function=Function(name=name, arguments=arguments))


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


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


@pytest.mark.parametrize(
    "given", [None, [], "", 0, False, {}, {"a": [1, 2.5, None, "x"]}, "\0", "\x1b[31m", {1: 2}]
)
async def test_any_json_is_a_result(given: Any) -> None:
    result = await result_of(Calls(given))
    assert kinds(result) == ["tool_result"]
    assert told(result) == json.loads(json.dumps(given))


@pytest.mark.parametrize(
    "given", [float("nan"), float("inf"), b"bytes", object(), {("a",): 1}, circular(), nested(100_000)]
)
async def test_a_result_that_is_no_json_is_a_failure_that_the_model_is_told(given: Any) -> None:
    result = await result_of(Calls(given))
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("depth", [10, 200, 400, 900])
async def test_a_deep_result_is_taken_or_refused_but_its_call_is_over(depth: int) -> None:
    given = told(await result_of(Calls(nested(depth))))
    assert given == nested(depth) or given["error"] == "tool_failed"


async def test_half_characters_in_a_result_are_replaced() -> None:
    result = await result_of(Calls({"text": "half \ud83d of one", "\udc00": 1}))
    assert told(result) == {"text": "half \ufffd of one", "\ufffd": 1}
    assert AgentState.model_validate_json(result.new_state.model_dump_json()) == result.new_state


async def test_a_result_that_is_too_large_to_keep_is_refused() -> None:
    result = await result_of(Calls("x" * (10 * 1024 * 1024 + 1)))
    assert told(result)["error"] == "too_large"


class Panic(BaseException):
    """As some extension modules raise."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(2),
        asyncio.CancelledError(),
        TimeoutError(),
        Panic("loud"),
        StopIteration(1),
    ],
)
async def test_a_tool_in_its_thread_may_raise_anything(error: BaseException) -> None:
    def tool(arguments: Mapping[str, Json]) -> Json:
        raise error

    result = await result_of(tool)
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), TimeoutError()])
async def test_an_asynchronous_tool_may_raise_what_is_no_end_of_the_program(error: BaseException) -> None:
    async def tool(arguments: Mapping[str, Json]) -> Json:
        raise error

    result = await result_of(tool)
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    tool = Calls()
    await result_of(tool, raw(arguments))
    assert tool.given == [{}]


@pytest.mark.parametrize(
    "arguments",
    [
        "null",
        "[]",
        "1",
        '"text"',
        "{",
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": Infinity}',
        "[" * 100_000,
        "9" * 5000,
    ],
)
async def test_arguments_that_are_no_object_run_nothing(arguments: str) -> None:
    tool = Calls()
    result = await result_of(tool, raw(arguments))
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "invalid_tool_arguments"
    assert tool.given == []


@pytest.mark.parametrize(
    "arguments", ['{"city": "half \\ud83d"}', '{"city": "\\udc00\\ud800"}', '{"n": 1e999}']
)
async def test_edited_arguments_are_told_as_they_were_run(arguments: str) -> None:
    model = Model(calling(call("tool")))
    agent = ChatAgent({"tool": Calls(7)}, model_runtime=model, policies=Policies(default="ask"))
    runtime = AgentRuntime(agent)
    state = initial()
    for _ in range(2):
        state = (await runtime.step(state)).new_state
    assert state.asked is not None
    edit = approvals(state.asked, approved=True, edited={"call_1": arguments})
    result = await runtime.step(answered(state, edit, "human:dana").new_state)
    assert kinds(result) == ["tool_result"]
    assert told(result) == {"edited_arguments": json.loads(arguments), "result": 7}


async def test_the_model_is_told_of_an_edit_when_the_call_fails_too() -> None:
    model = Model(calling(call("tool", city="Bonn")))
    tool = Calls(ValueError("no such city"))
    agent = ChatAgent({"tool": tool}, model_runtime=model, policies=Policies(default="ask"))
    runtime = AgentRuntime(agent)
    state = initial()
    for _ in range(2):
        state = (await runtime.step(state)).new_state
    assert state.asked is not None
    edit = approvals(state.asked, approved=True, edited={"call_1": '{"city": "Köln"}'})
    result = await runtime.step(answered(state, edit, "human:dana").new_state)
    assert told(result)["edited_arguments"] == {"city": "Köln"}
    assert told(result)["result"]["error"] == "tool_failed"


class TestPolicies:
    async def test_never_holds_whatever_the_agent_decides(self) -> None:
        tool = Calls()
        agent = Scripted(CallTool(tool_call=raw("{}"), approved=True), tools={"tool": tool})
        config = RuntimeConfig(policies=Policies(tools={"tool": "never"}))
        result = await AgentRuntime(agent, config).step(with_open(raw("{}")))
        assert told(result)["error"] == "tool_forbidden"
        assert tool.given == []

    async def test_never_holds_even_for_a_call_that_a_person_approved(self) -> None:
        tool = Calls()
        config = RuntimeConfig(policies=Policies(default="never"))
        result = await AgentRuntime(Scripted(tools={"tool": tool}), config).step(initial(), raw("{}"))
        assert told(result)["error"] == "tool_forbidden"
        assert tool.given == []

    @pytest.mark.parametrize("decision", [CallTool, dict])
    async def test_an_agent_cannot_approve_its_own_calls(self, decision: Any) -> None:
        tool = Calls()
        wanted = decision(type="call_tool", tool_call=raw("{}"), approved=True)
        config = RuntimeConfig(policies=Policies(tools={"tool": "ask"}))
        result = await AgentRuntime(Scripted(wanted, tools={"tool": tool}), config).step(with_open(raw("{}")))
        assert kinds(result) == ["human_approve_required", "tool_pending"]
        assert tool.given == []

    @pytest.mark.parametrize("of_the_agent", ["always", "ask", "never"])
    @pytest.mark.parametrize("of_the_configuration", ["always", "ask", "never"])
    async def test_the_stricter_of_two_policies_holds(
        self, of_the_agent: Any, of_the_configuration: Any
    ) -> None:
        model = Model(calling(call("tool")))
        agent = ChatAgent(
            {"tool": Calls("ran")}, model_runtime=model, policies=Policies(default=of_the_agent)
        )
        runtime = AgentRuntime(agent, RuntimeConfig(policies=Policies(default=of_the_configuration)))
        state = (await runtime.step(initial())).new_state
        result = await runtime.step(state)
        both = {of_the_agent, of_the_configuration}
        if "never" in both:
            assert told(result)["error"] == "tool_forbidden"
        elif "ask" in both:
            assert result.new_state.status == "waiting_for_human_input"
        else:
            assert told(result) == "ran"

    async def test_a_question_to_a_person_needs_no_approval(self) -> None:
        model = Model(calling(call(ASK_PERSON, question="Which city?")))
        agent = ChatAgent(model_runtime=model, policies=Policies(default="ask"), asks=True)
        runtime = AgentRuntime(agent)
        result = await runtime.step((await runtime.step(initial())).new_state)
        assert kinds(result) == ["human_prompt_required"]

    async def test_a_question_that_is_forbidden_is_not_asked(self) -> None:
        model = Model(calling(call(ASK_PERSON, question="Which city?")))
        agent = ChatAgent(model_runtime=model, policies=Policies(tools={ASK_PERSON: "never"}), asks=True)
        runtime = AgentRuntime(agent)
        first = await runtime.step(initial())
        assert model.asked[0].tools == ()
        assert told(await runtime.step(first.new_state))["error"] == "tool_forbidden"


class TestDecisions:
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
    async def test_what_is_no_instruction_is_an_error_event(self, decision: Any) -> None:
        result = await AgentRuntime(Scripted(decision)).step(initial())
        assert kinds(result) == ["error"]
        assert result.new_state.status == "error"
        assert result.new_state.error is not None
        assert result.new_state.error.code == "invalid_instruction"
        assert result.instruction == "agent"

    @pytest.mark.parametrize("given", [None, (), {"events": []}, AgentState])
    async def test_an_executor_that_gives_no_result_is_an_error_event(self, given: Any) -> None:
        async def forgetful(instruction: Instruction, state: AgentState) -> Any:
            return given

        result = await AgentRuntime(Scripted(Finish(), executors={"finish": forgetful})).step(initial())
        assert kinds(result) == ["error"]
        assert result.new_state.error is not None
        assert result.new_state.error.code == "invalid_instruction"

    @pytest.mark.parametrize("error", [asyncio.CancelledError(), TimeoutError(), RuntimeError()])
    async def test_an_agent_may_raise_anything(self, error: BaseException) -> None:
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
    async def test_an_executor_refuses_the_instruction_of_another(self, kind: str) -> None:
        runtime = AgentRuntime(Scripted())
        other: Instruction = CallLlm() if kind == "finish" else Finish()
        with pytest.raises(TypeError, match=other.type):
            await runtime.executors[kind](other, initial())

    async def test_a_mapping_is_an_instruction_too(self) -> None:
        result = await AgentRuntime(Scripted({"type": "finish", "reason": "enough"})).step(initial())
        assert (result.instruction, result.new_state.status) == ("finish", "done")

    async def test_a_runner_need_not_be_asynchronous(self) -> None:
        class Plain:
            tools: Mapping[str, AgentTool] = {}

            def runner(self, state: AgentState) -> Instruction:
                return Finish(reason="at once")

        assert (await AgentRuntime(Plain()).step(initial())).new_state.status == "done"

    async def test_several_things_are_asked_with_the_time_that_there_is(self) -> None:
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


class TestModels:
    @pytest.mark.parametrize("answer", [[], None, 7, iter([]), {"content": "whole"}])
    async def test_a_model_that_is_no_async_generator_is_an_error_event(self, answer: Any) -> None:
        def plain(payload: ModelPayload) -> Any:
            return answer

        result = await AgentRuntime(Scripted(CallLlm(), model_runtime=plain)).step(initial())
        assert kinds(result) == ["llm_start", "error"]
        assert result.new_state.messages == ()

    async def test_a_model_that_is_a_coroutine_is_an_error_event(self) -> None:
        async def whole(payload: ModelPayload) -> str:
            return "whole"

        result = await AgentRuntime(Scripted(CallLlm(), model_runtime=whole)).step(initial())  # type: ignore[arg-type]
        assert kinds(result) == ["llm_start", "error"]

    async def test_a_model_that_raises_at_once_is_an_error_event(self) -> None:
        def broken(payload: ModelPayload) -> Any:
            raise OSError("unplugged")

        result = await AgentRuntime(Scripted(CallLlm(), model_runtime=broken)).step(initial())
        assert kinds(result) == ["llm_start", "error"]
        assert result.new_state.error is not None
        assert "unplugged" in result.new_state.error.message

    @pytest.mark.parametrize(
        "chunk", [None, 7, "text", {"content": 7}, {"contents": "x"}, {"tool_calls": [{}]}]
    )
    async def test_a_chunk_that_is_none_is_an_error_event(self, chunk: Any) -> None:
        model = Model([{"content": "Hello"}, chunk])
        result = await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())
        assert kinds(result)[-1] == "error"
        assert result.new_state.messages == ()

    @pytest.mark.parametrize("error", [asyncio.CancelledError(), RuntimeError()])
    async def test_a_model_may_raise_anything(self, error: BaseException) -> None:
        async def model(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
            yield {"content": "Hello"}
            raise error

        result = await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())
        assert kinds(result) == ["llm_start", "llm_stream", "error"]
        assert result.new_state.messages == ()

    async def test_what_a_broken_answer_cost_is_counted(self) -> None:
        async def model(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
            yield {"content": "Hello", "usage": {"input_tokens": 10, "output_tokens": 1}}
            raise RuntimeError("cut off")

        state = (await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())).new_state
        assert (state.spent.model_calls, state.spent.tokens) == (1, 11)

    async def test_usage_adds_up(self) -> None:
        model = Model(
            [{"content": "one"}, {"usage": {"input_tokens": 10, "output_tokens": 2}}],
            [{"content": "two", "usage": {"input_tokens": 20, "output_tokens": 3}}],
            [{"content": "three"}],
        )
        runtime = AgentRuntime(Scripted(CallLlm(), CallLlm(), CallLlm(), model_runtime=model))
        state = initial()
        for _ in range(3):
            state = (await runtime.step(state)).new_state
        spent = state.spent
        assert (spent.input_tokens, spent.output_tokens, spent.tokens) == (30, 5, 35)
        assert (spent.model_calls, spent.tool_calls, state.step_count) == (3, 0, 3)

    async def test_ids_that_a_model_uses_again_are_made_unique(self) -> None:
        model = Model(calling(call("tool", "call_0", n=1)), calling(call("tool", "call_0", n=2)))
        tool = Calls("ran")
        runtime = AgentRuntime(ChatAgent({"tool": tool}, model_runtime=model))
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

    async def test_without_a_payload_a_model_gets_what_it_needs(self) -> None:
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


class TestLimits:
    async def stopped(self, limits: Limits, *decisions: object, **given: Any) -> AgentState:
        runtime = AgentRuntime(Scripted(*decisions, **given), RuntimeConfig(limits=limits))
        state = initial()
        for _ in range(20):
            state = (await runtime.step(state)).new_state
            if state.error is not None and state.error.code == "limit_reached":
                return state
        raise AssertionError("no limit was reached")

    async def test_steps(self) -> None:
        steps = [CallTool(tool_call=raw("{}", call_id=f"c{n}")) for n in range(9)]
        tool = Calls()
        state = await self.stopped(Limits(steps=3), *steps, tools={"tool": tool})
        assert len(tool.given) == 3
        assert state.status == "error"

    async def test_tokens(self) -> None:
        answer = [{"content": "x", "usage": {"input_tokens": 40, "output_tokens": 10}}]
        model = Model(*[answer] * 9)
        await self.stopped(Limits(tokens=100), *[CallLlm()] * 9, model_runtime=model)
        assert len(model.asked) == 2

    async def test_errors_in_a_row(self) -> None:
        steps = [CallTool(tool_call=raw("{}", call_id=f"c{n}")) for n in range(9)]
        tool = Calls(ValueError("never works"))
        await self.stopped(Limits(errors=3), *steps, tools={"tool": tool})
        assert len(tool.given) == 3

    async def test_errors_that_are_not_in_a_row_are_borne(self) -> None:
        steps = [CallTool(tool_call=raw("{}", n, f"c{i}")) for i, n in enumerate(["bad", "good"] * 4)]
        tools = {"bad": Calls(ValueError()), "good": Calls()}
        runtime = AgentRuntime(Scripted(*steps, tools=tools), RuntimeConfig(limits=Limits(errors=2)))
        state = initial()
        for _ in steps:
            state = (await runtime.step(state)).new_state
        assert (state.status, state.errors_in_a_row) == ("running", 0)

    async def test_a_model_that_hangs(self) -> None:
        async def silent(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
            await asyncio.Event().wait()
            yield {}

        state = await self.stopped(Limits(seconds=0.01), CallLlm(), model_runtime=silent)
        assert state.spent.seconds >= 0.01

    async def test_a_tool_that_hangs(self) -> None:
        async def silent(arguments: Mapping[str, Json]) -> Json:
            return await asyncio.Event().wait()

        state = await self.stopped(
            Limits(seconds=0.01), CallTool(tool_call=raw("{}")), tools={"tool": silent}
        )
        assert state.messages == ()

    async def test_an_agent_that_hangs(self) -> None:
        class Pondering(Scripted):
            async def runner(self, state: AgentState) -> Instruction:
                await asyncio.Event().wait()
                return Finish()

        runtime = AgentRuntime(Pondering(), RuntimeConfig(limits=Limits(seconds=0.01)))
        error = (await runtime.step(initial())).new_state.error
        assert error is not None
        assert error.code == "limit_reached"

    async def test_a_time_that_is_up_for_another_reason_is_no_limit(self) -> None:
        runtime = AgentRuntime(Scripted(TimeoutError("of my own")), RuntimeConfig(limits=Limits(seconds=60)))
        error = (await runtime.step(initial())).new_state.error
        assert error is not None
        assert (error.code, "of my own" in error.message) == ("agent_failed", True)


class TestStandingStill:
    async def test_a_state_that_waits_or_is_held_or_ended_stays_as_it_is(self) -> None:
        runtime = AgentRuntime(Scripted())
        for status in ("waiting_for_human_input", "paused", "cancelled"):
            state = initial().but(status=status)
            result = await runtime.step(state)
            assert (result.events, result.new_state) == ((), state)

    @pytest.mark.parametrize("status", ["paused", "cancelled"])
    async def test_an_approved_call_does_not_wake_what_is_held_or_ended(self, status: str) -> None:
        tool = Calls()
        state = initial().but(status=status)
        result = await AgentRuntime(Scripted(tools={"tool": tool})).step(state, raw("{}"))
        assert (result.events, result.new_state) == ((), state)
        assert tool.given == []


class TestPendingCalls:
    async def test_calls_that_are_run_one_by_one_leave_the_others_waiting(self) -> None:
        calls = (raw("{}", call_id="one"), raw("{}", call_id="two"))
        agent = Scripted(RequestHumanApprove(pending_tools_calling=calls), tools={"tool": Calls()})
        runtime = AgentRuntime(agent)
        state = (await runtime.step(with_open(*calls))).new_state
        first = (await runtime.step(state, calls[0])).new_state
        assert first.status == "waiting_for_human_input"
        assert first.pending_tools_calling == calls[1:]
        assert first.asked is not None
        done = answered(first, approvals(first.asked, approved=True), "human:dana").new_state
        assert done.approved_tools_calling == calls[1:]
        last = (await runtime.step(first, calls[1])).new_state
        assert (last.status, last.asked, last.pending_tools_calling) == ("running", None, ())


class TestHearing:
    async def heard(self, agent: Any, state: AgentState, **config: Any) -> tuple[list[Event], StepResult]:
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
    async def test_each_event_is_heard_once(self, agent: Any) -> None:
        events, result = await self.heard(agent, initial())
        assert [event.type for event in events] == kinds(result)

    async def test_a_limit_is_heard(self) -> None:
        events, result = await self.heard(Scripted(), initial(), limits=Limits(steps=0))
        assert events == list(result.events) != []

    async def test_a_listener_that_fails_changes_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        def deaf(event: Event) -> None:
            raise ValueError("cannot hear")

        agent = Scripted(CallTool(tool_call=raw("{}")), tools={"tool": Calls(1)})
        result = await AgentRuntime(agent, RuntimeConfig(on_event=deaf)).step(with_open(raw("{}")))
        assert told(result) == 1
        assert "cannot hear" in caplog.text


async def test_tools_that_are_not_asynchronous_do_not_wait_for_each_other() -> None:
    """However many hang, the next one runs."""
    together = threading.Barrier(50, timeout=20)

    def tool(arguments: Mapping[str, Json]) -> Json:
        together.wait()
        return "met"

    results = await asyncio.gather(*(result_of(tool) for _ in range(50)))
    assert {told(result) for result in results} == {"met"}


async def test_a_cancellation_is_raised_and_nothing_else_is() -> None:
    began = asyncio.Event()

    async def silent(arguments: Mapping[str, Json]) -> Json:
        began.set()
        return await asyncio.Event().wait()

    step = asyncio.create_task(result_of(silent))
    await began.wait()
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


def test_a_tool_that_never_ends_does_not_keep_the_program() -> None:
    program = """
import asyncio, threading
from watchroom.runtime import *

class One:
    tools = {"hangs": lambda arguments: threading.Event().wait()}
    def runner(self, state):
        return CallTool(tool_call=ToolCall(id="c", function=Function(name="hangs", arguments="")))

runtime = AgentRuntime(One(), RuntimeConfig(limits=Limits(seconds=0.05)))
result = asyncio.run(runtime.step(create_initial_state(session_id="s")))
print(result.new_state.error.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "limit_reached"


def test_tools_run_in_a_process_that_was_forked_too() -> None:
    program = """
import asyncio, os
from watchroom.runtime import *

class One:
    tools = {"tool": lambda arguments: "ran"}
    def runner(self, state):
        return CallTool(tool_call=ToolCall(id="c", function=Function(name="tool", arguments="")))

def run():
    result = asyncio.run(AgentRuntime(One()).step(create_initial_state(session_id="s")))
    os.write(1, f"{result.new_state.messages[-1].content}\\n".encode())

run()
child = os.fork()
run()
if child:
    os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ['"ran"'] * 3
