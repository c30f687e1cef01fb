"""What comes between two looks, and in the middle of a row."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from runtime.scripted import Speaker, at_work, say, status_is
from runtime.weather import Model, call, calling, offered
from runtime.working import ASK, SAYS, Held, asked_in, chat, deliver, held_tool, results
from watchroom import Workspace
from watchroom.errors import JournalError
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import CallOrigin, ChatAgent, Policies, RuntimeConfig
from watchroom.features.sessions.runtime.state import call_key
from watchroom.model import Appended, Draft


def after_append(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call ``act`` on the committing thread after each append, until ``monkeypatch`` is undone."""
    append = workspace.journal.append

    def append_and_act(drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        appended = append(drafts, all_or_nothing=all_or_nothing)
        act()
        return appended

    monkeypatch.setattr(workspace.journal, "append", append_and_act)


class TestRaces:
    async def test_a_word_between_the_first_row_and_the_first_look_is_heard(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with workspace.sessions.begin("bob", chat()):
            pass
        loop = asyncio.get_running_loop()
        said: list[dict[str, Any]] = []

        def speak() -> None:
            thread = threading.Thread(
                target=lambda: said.append(say(workspace, "cancel_agent", agent_id="alice"))
            )
            thread.start()
            thread.join()

        def once() -> None:
            monkeypatch.undo()
            loop.call_soon_threadsafe(speak)

        after_append(workspace, monkeypatch, once)
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            assert said[0]["success"]
            assert (await session.run()).status == "cancelled"

    async def test_a_row_that_is_being_written_is_waited_for(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        committing, may_end = threading.Event(), threading.Event()
        agent = chat(SAYS)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:

            def hold() -> None:
                committing.set()
                may_end.wait(20)

            after_append(workspace, monkeypatch, hold)
            run = asyncio.create_task(session.run())
            await asyncio.to_thread(committing.wait)
            run.cancel()
            await asyncio.sleep(0)
            assert not run.done()
            monkeypatch.undo()
            may_end.set()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert session.state == workspace.sessions.state("alice", "s1")
            assert session.state.step_count == 1
            assert (await session.run()).status == "done"

    async def test_what_a_tool_gave_is_kept_although_the_session_is_cancelled_just_then(
        self, workspace: Workspace
    ) -> None:
        held = Held()
        agent = chat(calling(call("work")), tools={"work": held_tool(held)})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            run = asyncio.create_task(session.run())
            await held.began.wait()
            for _ in range(100):
                before = asyncio.all_tasks()
                held.may_end.set()
                await asyncio.sleep(0)
                if len(asyncio.all_tasks()) < len(before):
                    break
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert results(session.state) == {"call_1": "finished"}

    async def test_who_is_cancelled_just_as_something_is_sent_is_cancelled(
        self, workspace: Workspace
    ) -> None:
        agent = chat(calling(call("work")), SAYS, tools={"work": held_tool(Held())}, policies=ASK)
        config = RuntimeConfig(ask_timeout=3600, inline=True)
        async with workspace.sessions.begin("alice", agent, config, session_id="s1") as session:
            run = asyncio.create_task(session.run())
            await asked_in(workspace, session)
            await asyncio.sleep(0)
            say(workspace, "pause_agent", agent_id="alice")
            deliver(workspace, session)
            run.cancel()
            await asyncio.wait({run}, timeout=20)
            assert run.cancelled()
            assert session.state.status == "waiting_for_human_input"

    async def test_a_session_whose_loop_has_ended_makes_no_other_deaf(self, workspace: Workspace) -> None:
        entered: list[Any] = []

        async def leave_behind() -> None:
            context = workspace.sessions.begin("alice", chat())
            entered.append(context)
            await context.__aenter__()

        loop = asyncio.new_event_loop()
        await asyncio.to_thread(loop.run_until_complete, leave_behind())
        loop.close()
        say(workspace, "cancel_agent", agent_id="alice")
        async with (
            workspace.sessions.begin("bob", chat(SAYS)) as session,
            at_work(session, stay=True) as run,
        ):
            await status_is(session, "done")
            say(workspace, "cancel_agent", agent_id="bob")
            async with asyncio.timeout(20):
                assert (await run).status == "cancelled"

    @pytest.mark.parametrize("at", ["model", "tool", "person", "paused"])
    async def test_a_workspace_that_is_closed_ends_its_sessions_with_an_error(
        self, root: Path, at: str
    ) -> None:
        workspace = Workspace.open(root, agents=["alice"])
        held, speaker = Held(), Speaker()
        tools = offered({"work": held_tool(held)})
        model: Any = speaker if at == "model" else Model(calling(call("work")), SAYS)
        policies = ASK if at == "person" else Policies()
        agent = ChatAgent(tools, model_runtime=model, policies=policies)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            if at == "paused":
                say(workspace, "pause_agent", agent_id="alice")
                deliver(workspace, session)
            run = asyncio.create_task(session.run())
            if at == "person":
                await asked_in(workspace, session)
            elif at == "paused":
                await status_is(session, "paused")
            else:
                await (held.began.wait() if at == "tool" else speaker.speaks.wait())
            await asyncio.to_thread(workspace.close)
            held.may_end.set()
            if at == "tool":
                with pytest.raises(JournalError):
                    await run
            else:
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run
        with pytest.raises(JournalError):
            async with workspace.sessions.begin("alice", agent):
                pass
        with Workspace.open(root) as later:
            assert later.verify() == []
            assert later.sessions.state("alice", "s1").session_id == "s1"


class TestToolboxTools:
    async def test_an_agent_works_with_the_tools_of_its_toolbox(self, workspace: Workspace) -> None:
        box = workspace.tools("alice")
        wanted = call("collab_write", filepath="plan.md", content="# Plan", message="first")
        agent = ChatAgent(agent_tools(box, toolsets=["collab"]), model_runtime=Model(calling(wanted), SAYS))
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            state = await session.run()
        assert results(state)["call_1"]["success"] is True
        row = workspace.journal.head("collab", "plan.md")
        assert row is not None
        assert str(row.detail["call"]).startswith("s1/")

    async def test_what_was_written_before_a_crash_is_not_written_again(self, workspace: Workspace) -> None:
        """The row was there when the process ended, the step was not; then somebody paused and resumed it."""
        box = workspace.tools("alice")
        wanted = call("handoff_file", to_agent="bob", filename="a.md", content="x", message="m")
        asking = chat(calling(wanted))
        async with workspace.sessions.begin("alice", asking, session_id="s1") as session:
            await session.step()
            (tool,) = [each for each in agent_tools(box) if each.name == "handoff_file"]
            key = call_key(session.state, wanted)
            tool.run(json.loads(wanted.function.arguments), CallOrigin(key))
        say(workspace, "pause_agent", agent_id="alice")
        say(workspace, "resume_agent", agent_id="alice")
        agent = ChatAgent(agent_tools(box), model_runtime=Model(SAYS))
        async with workspace.sessions.resume("alice", "s1", agent) as session:
            state = await session.run()
        assert results(state)["call_1"]["delivery"] == 1
        assert workspace.journal.version("handoff", "alice_to_bob/a.md", 2) is None

    async def test_it_is_found_however_much_the_agent_has_done_since(self, workspace: Workspace) -> None:
        box = workspace.tools("alice")
        wanted = call("handoff_file", to_agent="bob", filename="a.md", content="x", message="m")
        async with workspace.sessions.begin("alice", chat(calling(wanted)), session_id="s1") as session:
            await session.step()
            key = call_key(session.state, wanted)
        arguments = json.loads(wanted.function.arguments)
        box.dispatch_tool_call("handoff_file", arguments, call=key)
        for n in range(250):
            box.dispatch_tool_call("handoff_file", {**arguments, "filename": f"{n}.md"})
        agent = ChatAgent(agent_tools(box), model_runtime=Model(SAYS))
        async with workspace.sessions.resume("alice", "s1", agent) as session:
            state = await session.run()
        assert results(state)["call_1"]["delivery"] == 1
        assert workspace.journal.version("handoff", "alice_to_bob/a.md", 2) is None
