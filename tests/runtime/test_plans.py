"""Two model agents declare plans that overlap: both models and the overview know it before either begins."""

from __future__ import annotations

import asyncio

from projections.folding import needs
from runtime.weather import call, calling
from runtime.working import HELLO, SAYS, Held, chat, held_tool, results
from watchroom import Row, Toolbox, Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.model import MESSAGE


def planner(toolbox: Toolbox, path: str, held: Held) -> ChatAgent:
    """An agent that declares a plan, thinks until it is let go, and writes."""
    tools = {tool.name: tool for tool in agent_tools(toolbox)} | {"work": held_tool(held)}
    return chat(
        calling(call("declare_plan", "plan", paths=["src/api/**"], intent=f"write {path}")),
        calling(call("work", "think")),
        calling(call("collab_write", "write", filepath=path, content="x", message="m", expected_version=0)),
        SAYS,
        tools=tools,
    )


async def test_both_models_and_the_overview_know_an_overlap_before_either_begins(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    loop, notified = asyncio.get_running_loop(), asyncio.Event()

    def notify(row: Row) -> None:
        if row.tool == MESSAGE:
            loop.call_soon_threadsafe(notified.set)

    first, second = Held(), Held()
    one, other = planner(alice, "src/api/a.py", first), planner(bob, "src/api/b.py", second)
    async with (
        workspace.sessions.begin("alice", one, messages=HELLO) as session,
        workspace.sessions.begin("bob", other, messages=HELLO) as later,
    ):
        # After the session of alice, which has the notice when the test has it.
        end = workspace.background.subscribe(("alice",), notify)
        works = asyncio.create_task(session.run())
        await asyncio.wait_for(first.began.wait(), 20)
        works_too = asyncio.create_task(later.run())
        await asyncio.wait_for(second.began.wait(), 20)
        (need,) = needs(workspace)
        assert (need.kind, need.agent, need.against) == ("overlap", "bob", "alice")
        assert workspace.journal.head("collab", "src/api/a.py") is None
        assert workspace.journal.head("collab", "src/api/b.py") is None
        await asyncio.wait_for(notified.wait(), 20)
        end()
        first.may_end.set()
        second.may_end.set()
        ended = (await works, await works_too)
        assert [(each.status, each.error) for each in ended] == [("done", None), ("done", None)]
        (overlap,) = results(later.state)["plan"]["overlaps"]
        assert overlap == {"agent": "alice", "paths": ["src/api/**"], "intent": "write src/api/a.py"}
        told = [str(each) for each in session.state.messages]
        assert any("bob also plans to change" in each for each in told), told
