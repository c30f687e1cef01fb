"""Which calls are run: what the policies say of a tool, and what a person has approved."""

from __future__ import annotations

from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.steps import raw, told, with_open
from runtime.weather import Calls, Model, call, calling, offered
from watchroom.features.requests.rows import decide_all
from watchroom.features.sessions.runtime import (
    ASK_PERSON,
    AgentRuntime,
    CallTool,
    ChatAgent,
    InvalidTool,
    Policies,
    RequestHumanApprove,
    RuntimeConfig,
)
from watchroom.features.sessions.runtime.transitions import apply_answer


async def test_never_holds_whatever_the_agent_decides() -> None:
    tool = Calls()
    agent = Scripted(CallTool(tool_call=raw("{}"), approved=True), tools={"tool": tool})
    config = RuntimeConfig(policies=Policies(tools={"tool": "never"}))
    result = await AgentRuntime(agent, config).step(with_open(raw("{}")))
    assert told(result)["error"] == "tool_forbidden"
    assert tool.given == []


async def test_never_holds_even_for_a_call_that_a_person_approved() -> None:
    tool = Calls()
    config = RuntimeConfig(policies=Policies(default="never"))
    result = await AgentRuntime(Scripted(tools={"tool": tool}), config).step(initial(), raw("{}"))
    assert told(result)["error"] == "tool_forbidden"
    assert tool.given == []


@pytest.mark.parametrize("decision", [CallTool, dict])
async def test_an_agent_cannot_approve_its_own_calls(decision: Any) -> None:
    tool = Calls()
    wanted = decision(type="call_tool", tool_call=raw("{}"), approved=True)
    config = RuntimeConfig(policies=Policies(tools={"tool": "ask"}))
    result = await AgentRuntime(Scripted(wanted, tools={"tool": tool}), config).step(with_open(raw("{}")))
    assert kinds(result) == ["human_approve_required", "tool_pending"]
    assert tool.given == []


@pytest.mark.parametrize("of_the_agent", ["always", "ask", "never"])
@pytest.mark.parametrize("of_the_configuration", ["always", "ask", "never"])
async def test_the_stricter_of_two_policies_holds(of_the_agent: Any, of_the_configuration: Any) -> None:
    model = Model(calling(call("tool")))
    agent = ChatAgent(
        offered({"tool": Calls("ran")}), model_runtime=model, policies=Policies(default=of_the_agent)
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


async def test_a_question_to_a_person_needs_no_approval() -> None:
    model = Model(calling(call(ASK_PERSON, question="Which city?")))
    agent = ChatAgent(model_runtime=model, policies=Policies(default="ask"), asks=True)
    runtime = AgentRuntime(agent)
    result = await runtime.step((await runtime.step(initial())).new_state)
    assert kinds(result) == ["human_prompt_required"]


async def test_a_question_that_is_forbidden_is_not_asked() -> None:
    model = Model(calling(call(ASK_PERSON, question="Which city?")))
    agent = ChatAgent(model_runtime=model, policies=Policies(tools={ASK_PERSON: "never"}), asks=True)
    runtime = AgentRuntime(agent)
    first = await runtime.step(initial())
    assert model.asked[0].tools == ()
    assert told(await runtime.step(first.new_state))["error"] == "tool_forbidden"


async def test_calls_that_are_run_one_by_one_leave_the_others_waiting() -> None:
    calls = (raw("{}", call_id="one"), raw("{}", call_id="two"))
    agent = Scripted(RequestHumanApprove(pending_tools_calling=calls), tools={"tool": Calls()})
    runtime = AgentRuntime(agent)
    state = (await runtime.step(with_open(*calls))).new_state
    first = (await runtime.step(state, calls[0])).new_state
    assert first.status == "waiting_for_human_input"
    assert first.pending_tools_calling == calls[1:]
    assert first.asked is not None
    done = apply_answer(first, decide_all(first.asked, approved=True), "human:dana").new_state
    assert done.approved_tools_calling == calls[1:]
    last = (await runtime.step(first, calls[1])).new_state
    assert (last.status, last.asked, last.pending_tools_calling) == ("running", None, ())


def test_a_policy_under_a_misspelt_name_is_refused() -> None:
    tools = offered({"send_invoice": Calls()})
    with pytest.raises(InvalidTool) as refused:
        ChatAgent(tools, policies=Policies(tools={"send_invoce": "ask"}))
    assert refused.value.code == "invalid_tool"
    assert "send_invoce" in refused.value.message()
    # Policies may be shared with agents that have other tools.
    ChatAgent(tools, policies=Policies(tools={"send_invoice": "ask", "collab_write": "never"}))
