"""What a model has of its agent's buffers before each of its turns (EDIT-7.2): seen as of one moment, with
the tools that their states allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from runtime.weather import Model, call, calling
from runtime.working import HELLO, SAYS, results
from watchroom import Toolbox, Workspace
from watchroom.algorithms.editing import build_frames
from watchroom.algorithms.editing.rendering import MAX_SHOWN
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.sessions.runtime import ChatAgent, ModelPayload, Policies, ToolMessage
from watchroom.kernel.call_context import CallContext


def agent(toolbox: Toolbox, model: Model, policies: Policies | None = None) -> ChatAgent:
    return ChatAgent(
        agent_tools(toolbox, toolsets=["collab", "buffer"]),
        model_runtime=model,
        live=BufferTools(toolbox),
        policies=policies or Policies(),
    )


def offered(payload: ModelPayload) -> list[str]:
    found = [each["function"] for each in payload.tools]
    return [str(each["name"]) for each in found if isinstance(each, dict)]


def of_buffers(payload: ModelPayload) -> list[str]:
    return [name for name in offered(payload) if "buffer" in name or name.startswith("plan_")]


async def test_the_view_and_the_tools_follow_the_buffer(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="foo and foo\n", message="m")
    model = Model(
        calling(call("open_buffer", "1", source="collab", path="plan.md")),
        calling(call("plan_replace", "2", old_text="foo", new_text="bar")),
        calling(call("plan_replace_selection", "3", selection_id=2, new_text=None)),
        calling(call("plan_flush", "4", message="Bar.")),
        calling(call("close_buffer", "5", buffer="plan", discard=None)),
        SAYS,
    )
    async with workspace.sessions.begin("alice", agent(alice, model), messages=HELLO) as session:
        state = await session.run()
    assert state.status == "done"
    assert all(result["success"] for name, result in results(state).items() if name != "2")
    assert [of_buffers(payload) for payload in model.asked] == [
        ["open_buffer"],
        ["open_buffer", "close_buffer", "plan_replace", "plan_append"],
        ["open_buffer", "close_buffer", "plan_replace_selection", "plan_discard_selection"],
        ["open_buffer", "close_buffer", "plan_replace", "plan_append", *_TO_WRITE],
        ["open_buffer", "close_buffer", "plan_replace", "plan_append"],
        ["open_buffer"],
    ]
    views = [payload.messages[-1].content for payload in model.asked]
    assert views[0] == "Hello"
    assert "```text\nfoo and foo\n```" in views[1]
    assert "[[SEL#1]]foo[[/SEL#1]] and [[SEL#2]]foo[[/SEL#2]]\n" in views[2]
    assert "```text\nfoo and bar\n```" in views[3]
    assert "call plan_flush to write them" in views[3]
    assert "Nothing to write" in views[4]
    # The view is of the moment: no step keeps it.
    assert isinstance(model.asked[5].messages[-1], ToolMessage)
    assert not any("```text" in message.content for message in state.messages if message.role == "user")


_TO_WRITE = ("plan_flush", "plan_diff", "plan_accept_source")


async def test_what_others_wrote_shows_before_the_next_turn(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(bob, "collab_write", filepath="plan.md", content="two\n", message="m", expected_version=1)
    model = Model(SAYS)
    async with workspace.sessions.begin("alice", agent(alice, model), messages=HELLO) as session:
        await session.run()
    (payload,) = model.asked
    assert "now at version 2" in payload.messages[-1].content
    assert "plan_refresh" in offered(payload)


async def test_a_tool_that_is_never_allowed_is_not_offered(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    model = Model(SAYS)
    forbids = Policies(tools={"plan_append": "never", "close_buffer": "never"})
    async with workspace.sessions.begin("alice", agent(alice, model, forbids), messages=HELLO) as session:
        await session.run()
    assert of_buffers(model.asked[0]) == ["open_buffer", "plan_replace"]


@pytest.mark.parametrize(
    ("source", "path", "writer"),
    [
        ("collab", "plan.md", "collab_write"),
        ("private", "plan.md", "save_to_my_workspace"),
        ("file", "plan.md", "write_file"),
        ("board", "top-layer", "whiteboard_write"),
    ],
)
async def test_a_flush_needs_the_word_that_writing_there_needs(
    workspace: Workspace, alice: Toolbox, source: str, path: str, writer: str
) -> None:
    ok(alice, "open_buffer", source=source, path=path, name="plan")
    model = Model(
        calling(call("plan_append", "1", text="more\n")),
        calling(call("plan_flush", "2", message=None)),
        SAYS,
    )
    asks = Policies(tools={writer: "ask"})
    async with workspace.sessions.begin("alice", agent(alice, model, asks), messages=HELLO) as session:
        while session.state.status in ("idle", "running"):
            await session.step()
        assert [each.id for each in session.state.pending_tools_calling] == ["2"]
    model = Model(SAYS)
    forbids = Policies(tools={writer: "never"})
    async with workspace.sessions.begin("alice", agent(alice, model, forbids), messages=HELLO) as session:
        await session.run()
    assert "plan_diff" in offered(model.asked[0])
    assert "plan_flush" not in offered(model.asked[0])


async def test_a_tool_of_a_buffer_that_is_not_open_is_unknown(workspace: Workspace, alice: Toolbox) -> None:
    model = Model(calling(call("plan_append", "1", text="x")), SAYS)
    async with workspace.sessions.begin("alice", agent(alice, model), messages=HELLO) as session:
        state = await session.run()
    assert results(state)["1"]["error"] == "tool_not_found"
    assert state.status == "done"


async def test_a_resumed_session_has_its_buffers(root: Path) -> None:
    model = Model(calling(call("plan_append", "1", text="more\n")), RuntimeError("gone"))
    with Workspace.open(root, agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        async with workspace.sessions.begin("alice", agent(alice, model), messages=HELLO) as session:
            state = await session.run()
    assert state.status == "error"
    model = Model(calling(call("plan_flush", "2", message=None)), SAYS)
    with Workspace.open(root) as workspace:
        alice = workspace.tools("alice")
        taken_up = workspace.sessions.resume("alice", state.session_id, agent(alice, model))
        async with taken_up as session:
            await session.retry()
            state = await session.run()
        assert state.status == "done"
        assert "```text\nmore\n```" in model.asked[0].messages[-1].content
        assert ok(alice, "collab_read", filepath="plan.md")["content"] == "more\n"


def test_the_buffer_that_was_touched_last_has_the_room(workspace: Workspace, alice: Toolbox) -> None:
    for name in ("long", "short"):
        ok(alice, "open_buffer", source="collab", path=f"{name}.md")
    ok(alice, "short_append", text="A short text.\n")
    ok(alice, "long_append", text="a line\n" * MAX_SHOWN)
    view = alice.show_buffers()
    assert view.index("long: ") < view.index("short: ")
    assert "A short text." not in view
    assert len(view) < 2 * MAX_SHOWN
    ok(alice, "short_append", text="More.\n")
    assert "A short text.\nMore.\n" in alice.show_buffers()


def test_a_source_that_cannot_be_read_leaves_the_view(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="file", path="main.py")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    (task,) = workspace.tasks.list()
    workspace.tasks.end(CallContext("human:dana"), task.id, "cancelled", "Enough.")
    view = alice.show_buffers()
    assert "The source cannot be read" in view
    assert "plan: Idle" in view
    assert build_frames([]) == ()
