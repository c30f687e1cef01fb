"""An answer that was cut off, or says nothing, is none: the model is told, once, and then a person is needed."""

from __future__ import annotations

from typing import Any

import pytest
from runtime.scripted import at_work, initial, say, status_is
from runtime.weather import Calls, Chunk, Model, call, calling, offered
from runtime.working import SAYS
from watchroom import Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.sessions.runtime import AgentRuntime, AgentState, ChatAgent, UserMessage

HELLO = ({"role": "user", "content": "Hello"},)
CUT: list[Chunk] = [{"content": "It begins and", "finish_reason": "length"}]
EMPTY: list[Chunk] = [{"content": " \n", "finish_reason": "stop"}]
NOTHING: list[Chunk] = []


async def run(*answers: Any, **tools: Any) -> tuple[AgentState, Model]:
    model = Model(*answers)
    runtime = AgentRuntime(ChatAgent(offered(tools), model_runtime=model))
    state = initial(messages=HELLO)
    while state.status not in ("done", "error"):
        state = (await runtime.step(state)).new_state
    return state, model


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(CUT, "length"), (EMPTY, "empty"), (NOTHING, "empty")],
    ids=["cut", "empty", "nothing"],
)
async def test_the_model_is_told_and_goes_on_once(answer: list[Chunk], reason: str) -> None:
    state, model = await run(answer, SAYS)
    assert state.status == "done"
    told = model.asked[1].messages[-1]
    assert isinstance(told, UserMessage)
    assert told.author == "system"
    assert {"length": "cut off", "empty": "empty"}[reason] in told.content
    assert [event.reason for event in state.events if event.type == "llm_incomplete"] == [reason]
    assert [message.content for message in state.messages if message.role == "assistant"] == (
        ["It begins and", "Done."] if reason == "length" else ["Done."]
    )


@pytest.mark.parametrize("answer", [CUT, EMPTY, NOTHING], ids=["cut", "empty", "nothing"])
async def test_the_second_time_a_person_is_needed(workspace: Workspace, answer: list[Chunk]) -> None:
    agent = ChatAgent(model_runtime=Model(answer, answer, answer, SAYS))
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        state = await session.run()
        assert state.status == "error"
        assert state.error is not None
        assert state.error.code == "incomplete_answer"
        head = workspace.journal.head("session", session.path)
        assert head is not None
        assert head.detail["error"] == "incomplete_answer"
        fold = Fold(workspace.journal.content, workspace.journal.row)
        fold.apply(workspace.journal.rows(limit=1000))
        assert [need.kind for need in fold.model().needs] == ["failed"]
        async with at_work(session, stay=True):
            say(workspace, "resume_agent", agent_id="alice")
            await status_is(session, "done")
        assert session.state.messages[-1].content == "Done."


async def test_a_call_that_was_cut_off_is_not_made() -> None:
    tool = Calls()
    cut = [*calling(call("tool", "c1", path="all")), {"finish_reason": "length"}]
    state, _ = await run(cut, SAYS, tool=tool)
    assert (state.status, tool.given, state.open_calls) == ("done", [], ())


async def test_a_whole_answer_begins_the_count_anew() -> None:
    tool = Calls()
    state, model = await run(CUT, calling(call("tool", "c1")), CUT, SAYS, tool=tool)
    assert (state.status, len(model.asked), len(tool.given)) == ("done", 4, 1)
