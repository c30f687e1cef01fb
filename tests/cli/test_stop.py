"""``watchroom stop``: pause or end agents, with a proof for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from cli.running import Captured, misuse, printed, printed_json, run
from runtime.scripted import at_work, say, status_is
from runtime.weather import Calls, call, calling, offered
from runtime.working import HELLO, Held
from watchroom import Workspace
from watchroom.features.sessions.runtime import ChatAgent, ModelPayload, RuntimeConfig
from watchroom.features.sessions.runtime.agent import Limits

FOR_EVER = RuntimeConfig(limits=Limits(steps=None))


class Looping:
    """A model that calls the tool forever."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        self.asked += 1
        for chunk in calling(call("tool", f"c{self.asked}"), content=f"Turn {self.asked}."):
            yield chunk


def looping() -> ChatAgent:
    return ChatAgent(offered({"tool": Calls("fine")}), model_runtime=Looping())


async def test_endless_loops_are_paused_and_only_these_go_on(workspace: Workspace, capsys: Captured) -> None:
    root = str(workspace.root)
    async with (
        workspace.sessions.begin("alice", looping(), FOR_EVER, messages=HELLO) as alice,
        workspace.sessions.begin("bob", looping(), FOR_EVER, messages=HELLO) as bob,
        at_work(alice),
        at_work(bob),
    ):
        say(workspace, "pause_agent", agent_id="bob")
        await status_is(bob, "paused")
        stop = asyncio.to_thread(printed_json, capsys, "stop", root, "alice", "--yes", "--json")
        (proof,) = await stop
        head = workspace.journal.head("session", alice.path)
        assert head is not None
        assert (proof["agent"], proof["is_proven"]) == ("alice", True)
        assert str(head.seq) in proof["how"]
        assert alice.state.status == "paused"
        # An agent that somebody else paused stays paused, whichever process releases.
        await asyncio.to_thread(printed, capsys, "stop", root, "--release", "--yes")
        await status_is(alice, "running")
        assert bob.state.status == "paused"
        assert await asyncio.to_thread(printed, capsys, "stop", root, "--release") == "No agent is stopped.\n"


async def test_all_are_paused_and_agents_that_begin_later(workspace: Workspace, capsys: Captured) -> None:
    root = str(workspace.root)
    async with (
        workspace.sessions.begin("alice", looping(), FOR_EVER, messages=HELLO) as alice,
        at_work(alice),
    ):
        (proof,) = await asyncio.to_thread(printed_json, capsys, "stop", root, "--all", "--yes", "--json")
        assert proof["is_proven"]
        async with workspace.sessions.begin("bob", looping(), FOR_EVER, messages=HELLO) as bob, at_work(bob):
            await status_is(bob, "paused")
            released = await asyncio.to_thread(printed, capsys, "stop", root, "--release", "--yes")
            assert released == "Resumed: alice, bob.\n"
            for each in (alice, bob):
                await status_is(each, "running")


async def test_a_stop_is_released_although_no_agent_is_left(workspace: Workspace, capsys: Captured) -> None:
    root = str(workspace.root)
    async with (
        workspace.sessions.begin("alice", looping(), FOR_EVER, messages=HELLO) as alice,
        at_work(alice),
    ):
        await asyncio.to_thread(printed, capsys, "stop", root, "--all", "--yes")
        say(workspace, "cancel_agent", agent_id="alice")
        await status_is(alice, "cancelled")
        released = await asyncio.to_thread(printed, capsys, "stop", root, "--release", "--yes")
        assert released == "Agents that begin from now on are not paused.\n"


async def test_all_are_ended_even_in_a_tool_that_hangs(workspace: Workspace, capsys: Captured) -> None:
    held = Held()
    hanging = ChatAgent(offered({"work": held}), model_runtime=HangingOnce())
    async with (
        workspace.sessions.begin("alice", looping(), FOR_EVER, messages=HELLO) as alice,
        workspace.sessions.begin("bob", hanging, FOR_EVER, messages=HELLO) as bob,
        at_work(alice) as one,
        at_work(bob) as other,
    ):
        await held.began.wait()
        proofs = await asyncio.to_thread(
            printed_json, capsys, "stop", str(workspace.root), "--all", "--end", "--yes", "--json"
        )
        assert {each["agent"]: each["is_proven"] for each in proofs} == {"alice": True, "bob": True}
        assert [(await each).status for each in (one, other)] == ["cancelled", "cancelled"]
        assert held.was_cancelled


class HangingOnce:
    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        for chunk in calling(call("work", "c1")):
            yield chunk


async def test_a_lost_session_is_reported_as_not_running(workspace: Workspace, capsys: Captured) -> None:
    async with workspace.sessions.begin("alice", looping(), messages=HELLO):
        pass
    # Another workspace stands in for the ended process, because its lease is gone.
    root = str(workspace.root)
    workspace.close()
    (proof,) = await asyncio.to_thread(printed_json, capsys, "stop", root, "--all", "--yes", "--json")
    assert proof["is_proven"]
    assert "no process" in proof["how"]


def test_stop_needs_agents_or_all(workspace: Workspace, capsys: Captured) -> None:
    root = str(workspace.root)
    assert "--all" in misuse(capsys, "stop", root)
    assert "--all" in misuse(capsys, "stop", root, "alice", "--all")
    assert printed(capsys, "stop", root, "--all") == "No agent has an open session.\n"
    status, _, said = run(capsys, "stop", root, "alice", "--yes")
    assert (status, "alice" in said) == (1, True)
