"""Sessions that go on in another process, and who may run them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from clock import JumpingMonotonicClock
from runtime.scripted import Scripted, at_work, say, status_is
from runtime.weather import Calls, call, calling
from runtime.working import ASK, HELLO, SAYS, Held, asked_in, chat, deliver, held_tool, is_whole, results
from watchroom import Json, Workspace
from watchroom.errors import SessionTaken
from watchroom.features.sessions.runtime import (
    AgentTool,
    CallOrigin,
    CallTool,
    ChatAgent,
    Finish,
    Limits,
    RuntimeConfig,
    ToolMessage,
)


class TestResuming:
    async def test_a_word_that_was_heeded_is_not_heeded_again(self, workspace: Workspace, root: Path) -> None:
        """A resume that had nothing to resume must not resume what fails later, in another process."""
        held = Held()
        agent = chat(calling(call("work")), OSError("unplugged"), tools={"work": held_tool(held)})
        async with (
            workspace.sessions.begin("alice", agent, session_id="s1") as session,
            at_work(session) as run,
        ):
            await held.began.wait()
            say(workspace, "resume_agent", agent_id="alice")
            deliver(workspace, session)
            held.may_end.set()
            assert (await run).status == "error"
        with Workspace.open(root) as later:
            async with later.sessions.resume("alice", "s1", chat(SAYS)) as session:
                state = await session.run()
        assert [event.by for event in state.events if event.type == "resumed"] == ["alice"]

    @pytest.mark.parametrize(
        "status", ["idle", "running", "waiting_for_human_input", "paused", "error", "done"]
    )
    async def test_a_session_goes_on_from_any_status(
        self, workspace: Workspace, root: Path, status: str
    ) -> None:
        def agent(*answers: Any) -> ChatAgent:
            tools = {"tool": Calls("ran")}
            return chat(*answers, tools=tools, policies=ASK)

        steps = {"idle": 0, "running": 1, "waiting_for_human_input": 2, "paused": 0, "error": 1, "done": 2}
        first = {"error": [OSError("unplugged")], "done": [SAYS]}.get(status, [calling(call("tool"))])
        async with workspace.sessions.begin(
            "alice", agent(*first), session_id="s1", messages=HELLO
        ) as session:
            for _ in range(steps[status]):
                await session.step()
            if status == "paused":
                say(workspace, "pause_agent", agent_id="alice")
                deliver(workspace, session)
                async with at_work(session):
                    await status_is(session, "paused")
            left = session.state
        assert left.status == status
        assert workspace.sessions.state("alice", "s1") == left
        with Workspace.open(root) as later:
            rest = [] if status in ("running", "waiting_for_human_input") else [calling(call("tool"))]
            async with later.sessions.resume("alice", "s1", agent(*rest, SAYS)) as session:
                assert session.state == left or (status, session.state.status) == ("error", "running")
                word = {"done": "send_message", "paused": "resume_agent"}.get(status)
                if word == "send_message":
                    say(later, word, to="alice", payload={"text": "And now?"})
                elif word:
                    say(later, word, agent_id="alice")
                if word:
                    deliver(later, session)
                async with at_work(session) as run:
                    number = await asked_in(later, session)
                    say(later, "answer_request", request=number, approved=True)
                    state = await run
        assert (state.status, results(state)) == ("done", {"call_1": "ran"})
        assert is_whole(state)

    async def test_an_answer_that_was_given_meanwhile_is_found(
        self, workspace: Workspace, root: Path
    ) -> None:
        agent = chat(calling(call("tool")), tools={"tool": Calls()}, policies=ASK)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session, at_work(session):
            number = await asked_in(workspace, session)
        say(workspace, "answer_request", request=number, approved=True)
        with Workspace.open(root) as later:
            agent = chat(SAYS, tools={"tool": Calls("ran")}, policies=ASK)
            async with later.sessions.resume("alice", "s1", agent) as session:
                assert results(await session.run()) == {"call_1": "ran"}

    async def test_a_plain_tool_that_was_cut_off_is_not_run_again(self, workspace: Workspace) -> None:
        held = Held()
        agent = chat(calling(call("work")), tools={"work": held_tool(held)})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session, at_work(session):
            await held.began.wait()
        again = Held()
        agent = chat(SAYS, tools={"work": held_tool(again)})
        async with workspace.sessions.resume("alice", "s1", agent) as session:
            say(workspace, "pause_agent", agent_id="alice")
            deliver(workspace, session)
            async with at_work(session) as run:
                await status_is(session, "paused")
                say(workspace, "resume_agent", agent_id="alice")
                state = await run
        assert results(state)["call_1"]["error"] == "tool_interrupted"
        assert (held.times, again.times) == (1, 0)
        assert is_whole(state)

    @pytest.mark.parametrize("hints", [{"repeatable": True}, {"recovers": True}])
    async def test_a_tool_that_may_run_again_learns_that_it_may_have_run(
        self, workspace: Workspace, hints: dict[str, Any]
    ) -> None:
        origins: list[CallOrigin] = []

        def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
            origins.append(origin)
            return "ran"

        held = Held()
        agent = chat(
            calling(call("work", "c1"), call("work", "c2")), tools={"work": held_tool(held, **hints)}
        )
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session, at_work(session):
            await held.began.wait()
        agent = chat(SAYS, tools={"work": AgentTool("work", run, {}, **hints)})
        async with workspace.sessions.resume("alice", "s1", agent) as session:
            say(workspace, "pause_agent", agent_id="alice")
            say(workspace, "resume_agent", agent_id="alice")
            deliver(workspace, session)
            state = await session.run()
        assert [origin.may_have_run for origin in origins] == [True, True]
        assert len({origin.key for origin in origins}) == 2
        assert results(state) == {"c1": "ran", "c2": "ran"}

    async def test_a_plain_tool_that_took_too_long_is_not_run_again(
        self, workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = JumpingMonotonicClock(monkeypatch)
        held, config = Held(), RuntimeConfig(limits=Limits(seconds=3600))
        agent = chat(calling(call("work")), SAYS, tools={"work": held_tool(held)})
        async with (
            workspace.sessions.begin("alice", agent, config, session_id="s1") as session,
            at_work(session) as run,
        ):
            await held.began.wait()
            clock.ahead = 3600
            state = await run
            assert state.error is not None
            assert state.error.code == "limit_reached"
            assert len(state.open_calls) == 1
            assert held.times == 1, "its time was over while the tool was at work"
        with Workspace.open(root) as other:
            agent = chat(SAYS, tools={"work": held_tool(held)})
            say(other, "resume_agent", agent_id="alice")
            async with other.sessions.resume("alice", "s1", agent) as session:
                state = await session.run()
        assert results(state)["call_1"]["error"] == "tool_interrupted"
        assert held.times == 1

    async def test_an_agents_own_calls_are_told_apart(self, workspace: Workspace, root: Path) -> None:
        held = Held()
        tools = {"work": held_tool(held)}
        wanted = CallTool(tool_call=call("work"))
        held.may_end.set()
        agent = Scripted(wanted, wanted, tools=tools)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            await session.step()
            held.may_end.clear()
            held.began.clear()
            async with at_work(session):
                await held.began.wait()
        with Workspace.open(root) as later:
            held.may_end.set()
            agent = Scripted(wanted, wanted, Finish(), tools=tools)
            async with later.sessions.resume("alice", "s1", agent) as session:
                state = await session.run()
        told = [json.loads(message.content) for message in state.messages if isinstance(message, ToolMessage)]
        assert told[0] == "finished"
        assert told[1]["error"] == "tool_interrupted"
        assert told[2] == "finished"
        assert held.times == 3


class TestTwoProcesses:
    async def test_the_one_that_a_session_was_taken_from_is_told(
        self, workspace: Workspace, root: Path
    ) -> None:
        with Workspace.open(root) as other:
            async with (
                workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as one,
                other.sessions.resume("alice", "s1", chat(SAYS)) as two,
            ):
                with pytest.raises(SessionTaken):
                    await one.step()
                assert (await two.run()).status == "done"
        assert [row.outcome for row in workspace.journal.refused("session", "alice/s1")] == ["conflict"]

    async def test_a_plain_tool_is_run_by_one_of_them(self, workspace: Workspace, root: Path) -> None:
        """Both take up the same call at the same moment: the one that took the session over last makes it."""
        for n in range(10):
            tool = Calls("ran")
            asking = calling(call("tool"))
            async with workspace.sessions.begin(
                "alice", chat(asking, tools={"tool": tool}), session_id=f"s{n}"
            ) as session:
                await session.step()
            with Workspace.open(root) as other:
                agent = chat(SAYS, SAYS, tools={"tool": tool})
                async with (
                    workspace.sessions.resume("alice", f"s{n}", agent) as one,
                    other.sessions.resume("alice", f"s{n}", agent) as two,
                ):
                    ended = await asyncio.gather(one.run(), two.run(), return_exceptions=True)
            assert len(tool.given) == 1
            assert [isinstance(each, SessionTaken) for each in ended] == [True, False]
            state = workspace.sessions.state("alice", f"s{n}")
            assert len(results(state)) == 1

    async def test_one_that_slept_does_not_run_what_another_has_run(
        self, workspace: Workspace, root: Path
    ) -> None:
        tool = Calls("ran")
        agent = chat(calling(call("tool")), tools={"tool": tool})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as sleeper:
            await sleeper.step()
            with Workspace.open(root) as other:
                agent = chat(SAYS, tools={"tool": tool})
                async with other.sessions.resume("alice", "s1", agent) as session:
                    assert (await session.run()).status == "done"
            with pytest.raises(SessionTaken):
                await sleeper.run()
        assert len(tool.given) == 1


class TestTryingAgain:
    async def test_a_session_that_an_error_stopped_tries_again_when_it_is_resumed(
        self, workspace: Workspace
    ) -> None:
        async with workspace.sessions.begin("alice", chat(ValueError("gone")), session_id="s1") as session:
            assert (await session.run()).status == "error"
        async with workspace.sessions.resume("alice", "s1", chat(SAYS)) as session:
            state = await session.run()
        assert (state.status, state.error) == ("done", None)
        assert [event.type for event in state.events if event.type in ("error", "resumed", "done")] == [
            "error",
            "resumed",
            "done",
        ]
