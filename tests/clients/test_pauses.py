"""A pause of an agent holds for each of its sessions until a person resumes it, also for sessions that begin
or continue during the pause. A pause of everybody holds for agents that begin later, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from calls import ok
from clients.attached import PATIENCE, told
from clients.test_acp import Run, says
from clients.test_waiting import CALL, outcome, permission
from runtime.scripted import status_is
from runtime.working import HELLO, SAYS, chat
from serving.clients import within
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.snapshots import read_model

PAUSES: Final = ("agent", "everybody")
CANCEL: Final = "cancel_agent"
WRITE: Final = {"filepath": "plan.md", "content": "x\n", "message": "m"}


def steer(workspace: Workspace, tool: str, **arguments: object) -> Mapping[str, Any]:
    return ok(workspace.tools_for_human("ann"), tool, **arguments)


def work(workspace: Workspace, agent: str, session: str) -> ClientSession:
    """A session of ``agent`` that has begun a turn."""
    begun = ClientSession(workspace, agent, session, ClientInfo("claude"))
    begun.record(PromptSubmitted("Go"))
    return begun


def pause(workspace: Workspace, whom: str) -> None:
    """Pause alice, who has a session, or everybody while only bob has a session."""
    if whom == "agent":
        work(workspace, "alice", "s-0")
        steer(workspace, "pause_agent", agent_id="alice")
    else:
        work(workspace, "bob", "s-0")
        steer(workspace, "stop_agents", agents=["bob"], everybody=True)


def resume(workspace: Workspace, whom: str) -> None:
    if whom == "agent":
        steer(workspace, "resume_agent", agent_id="alice")
    else:
        steer(workspace, "release_agents")


def new_folder(folder: Path) -> Path:
    made = folder / "again"
    made.mkdir()
    return made


def is_written(workspace: Workspace) -> bool:
    return workspace.journal.head("collab", "plan.md") is not None


async def is_held(task: asyncio.Task[Any], seconds: float = 1.2) -> bool:
    return not (await asyncio.wait({task}, timeout=seconds))[0]


def shown(workspace: Workspace, agent: str) -> tuple[bool, str]:
    """Whether the dashboard shows that ``agent`` is paused, and its status."""
    model = read_model(workspace.journal, workspace.journal.last_seq())
    (view,) = [each for each in model.agents if each.agent.id == agent]
    return view.is_paused, view.status(workspace.journal.now())


@pytest.mark.parametrize("whom", PAUSES)
async def test_a_call_of_a_session_that_begins_during_the_pause_waits(root: Path, whom: str) -> None:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        pause(workspace, whom)
        client = Attachment(workspace, "alice", "claude", hold_seconds=PATIENCE)
        await client.handle(told("SessionStart", source="startup"))
        blocked = await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        assert (blocked.said or {}).get("decision") == "block"
        assert shown(workspace, "alice") == (True, "paused")
        call = asyncio.ensure_future(client.handle(told("PreToolUse", **CALL)))
        assert await is_held(call)
        await asyncio.to_thread(resume, workspace, whom)
        assert permission(await outcome(call)) == ""
        assert not shown(workspace, "alice")[0]


@pytest.mark.parametrize("whom", PAUSES)
@pytest.mark.parametrize("has_session", [False, True])
async def test_a_call_over_mcp_waits(
    workspace: Workspace, alice: Toolbox, whom: str, has_session: bool
) -> None:
    """Also while a session begins, or if the agent has none."""
    await asyncio.to_thread(pause, workspace, whom)
    if has_session:
        await asyncio.to_thread(work, workspace, "alice", "s-1")
    elif whom == "agent":
        ended = ClientSession(workspace, "alice", "s-0", ClientInfo("claude"))
        await asyncio.to_thread(ended.record, SessionEnded("done"))
    async with within(workspace, alice) as client:
        call = asyncio.create_task(client.call_tool("collab_write", WRITE))
        assert await is_held(call)
        await asyncio.to_thread(work, workspace, "alice", "s-2")
        assert await is_held(call)
        assert not is_written(workspace)
        await asyncio.to_thread(resume, workspace, whom)
        assert not error_of(await asyncio.wait_for(call, PATIENCE))
    assert is_written(workspace)


def error_of(result: Any) -> object:
    return (result.structured_content or {}).get("error")


@pytest.mark.parametrize("whom", PAUSES)
@pytest.mark.parametrize("resumes", [False, True])
async def test_a_run_that_begins_during_the_pause_sends_no_prompt(
    workspace: Workspace, tmp_path: Path, whom: str, resumes: bool
) -> None:
    """A new run, and one that continues a session."""
    if resumes:
        await Run(workspace, tmp_path, [says("Done")]).once()
    await asyncio.to_thread(pause, workspace, whom)
    run = Run(workspace, new_folder(tmp_path), [says("Done")])
    running = run.start(resume="scripted-1" if resumes else "")
    await run.until(lambda: "is_paused=True" in str(run.events))
    assert await is_held(running)
    assert run.sent("session/prompt") == []
    assert run.status == "paused"
    assert shown(workspace, "alice") == (True, "paused")
    await asyncio.to_thread(resume, workspace, whom)
    await run.until(lambda: "TurnEnded" in str(run.events))
    assert len(run.sent("session/prompt")) == 1
    await asyncio.to_thread(steer, workspace, CANCEL, agent_id="alice")
    await asyncio.wait_for(running, PATIENCE)


async def test_a_paused_run_that_continues_stays_paused(workspace: Workspace, tmp_path: Path) -> None:
    run = Run(workspace, tmp_path, [says("Done")])
    running = run.start()
    await run.until(lambda: "TurnEnded" in str(run.events))
    await asyncio.to_thread(steer, workspace, "pause_agent", agent_id="alice")
    await run.has_status("paused")
    running.cancel()
    await asyncio.wait({running})
    again = Run(workspace, new_folder(tmp_path), [says("Done")])
    running = again.start(resume="scripted-1")
    await again.until(lambda: "is_paused=True" in str(again.events))
    assert await is_held(running)
    assert again.sent("session/prompt") == []
    await asyncio.to_thread(steer, workspace, "resume_agent", agent_id="alice")
    await again.until(lambda: "TurnEnded" in str(again.events))
    await asyncio.to_thread(steer, workspace, CANCEL, agent_id="alice")
    await asyncio.wait_for(running, PATIENCE)


@pytest.mark.parametrize("whom", PAUSES)
async def test_a_session_of_the_runtime_that_begins_during_the_pause_takes_no_step(
    workspace: Workspace, whom: str
) -> None:
    await asyncio.to_thread(pause, workspace, whom)
    async with workspace.sessions.begin("alice", chat(SAYS), messages=HELLO) as session:
        run = asyncio.create_task(session.run())
        await status_is(session, "paused")
        assert await is_held(run)
        assert shown(workspace, "alice") == (True, "paused")
        await asyncio.to_thread(resume, workspace, whom)
        assert (await asyncio.wait_for(run, PATIENCE)).status == "done"


@pytest.mark.parametrize("whom", PAUSES)
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_message_does_not_continue_an_ended_session_of_a_paused_agent(
    workspace: Workspace, whom: str, is_restarted: bool
) -> None:
    """In the process that runs it, and in the next process."""
    async with workspace.sessions.begin("alice", chat(SAYS, SAYS), messages=HELLO) as session:
        assert (await session.run()).status == "done"
        await asyncio.to_thread(pause, workspace, whom)
        number = session.state.session_id
        if not is_restarted:
            await stays_paused(workspace, session, whom)
            return
    async with workspace.sessions.resume("alice", number, chat(SAYS, SAYS)) as session:
        await stays_paused(workspace, session, whom)


async def stays_paused(workspace: Workspace, session: Any, whom: str) -> None:
    run = asyncio.create_task(session.run(stay=True))
    await asyncio.to_thread(
        ok, workspace.tools_for_human("ann"), "send_message", to="alice", payload={"text": "Go on"}
    )
    await status_is(session, "paused")
    assert await is_held(run)
    await asyncio.to_thread(resume, workspace, whom)
    await status_is(session, "done")
    assert [each.content for each in session.state.messages][-2:] == ["Go on", "Done."]
    run.cancel()
    await asyncio.wait({run})


async def test_a_session_that_failed_is_not_retried_during_a_pause_of_everybody(workspace: Workspace) -> None:
    async with workspace.sessions.begin("alice", chat(), messages=HELLO) as session:
        assert (await session.run()).status == "error"
    await asyncio.to_thread(pause, workspace, "everybody")
    async with workspace.sessions.resume("alice", session.state.session_id, chat(SAYS)) as again:
        run = asyncio.create_task(again.run())
        await status_is(again, "paused")
        assert await is_held(run)
        await asyncio.to_thread(resume, workspace, "everybody")
        assert (await asyncio.wait_for(run, PATIENCE)).status == "done"


class TestEverybody:
    def test_an_agent_without_a_session_is_paused_too(self, workspace: Workspace) -> None:
        row = steer(workspace, "stop_agents", agents=["alice"], everybody=True)["rows"]["alice"]
        assert workspace.stops.is_paused("alice")
        stop = workspace.session_zone.find_stop_of_all()
        assert stop is not None
        assert stop.seq == row

    def test_one_agent_is_resumed_alone(self, workspace: Workspace) -> None:
        pause(workspace, "everybody")
        for agent in ("alice", "charlie"):
            work(workspace, agent, "s-1")
        steer(workspace, "resume_agent", agent_id="alice")
        held = {each: workspace.stops.is_paused(each) for each in ("alice", "bob", "charlie")}
        assert held == {"alice": False, "bob": True, "charlie": True}
        assert not shown(workspace, "alice")[0]
        rows = steer(workspace, "release_agents")["rows"]
        assert set(rows) == {"bob", "charlie"}
        assert not any(workspace.stops.is_paused(each) for each in ("alice", "bob", "charlie"))

    def test_the_end_of_an_agent_does_not_end_it(self, workspace: Workspace) -> None:
        pause(workspace, "everybody")
        work(workspace, "alice", "s-1").record(SessionEnded("cancelled"))
        steer(workspace, CANCEL, agent_id="alice")
        work(workspace, "alice", "s-2")
        assert workspace.stops.is_paused("alice")

    def test_an_agent_that_was_paused_before_stays_paused(self, workspace: Workspace) -> None:
        pause(workspace, "agent")
        pause(workspace, "everybody")
        work(workspace, "alice", "s-1")
        assert set(steer(workspace, "release_agents")["rows"]) == {"bob"}
        assert workspace.stops.is_paused("alice")
        assert shown(workspace, "alice")[0]

    def test_an_agent_that_is_paused_during_it_stays_paused(self, workspace: Workspace) -> None:
        pause(workspace, "everybody")
        work(workspace, "alice", "s-1")
        steer(workspace, "pause_agent", agent_id="alice")
        steer(workspace, "release_agents")
        assert workspace.stops.is_paused("alice")
        assert shown(workspace, "alice")[0]

    def test_an_agent_that_is_registered_during_it_is_paused(self, workspace: Workspace) -> None:
        pause(workspace, "everybody")
        with Workspace.open(workspace.root, agents=["newcomer"]):
            work(workspace, "newcomer", "s-1")
        assert workspace.stops.is_paused("newcomer")
        assert shown(workspace, "newcomer")[0]
        assert set(steer(workspace, "release_agents")["rows"]) == {"bob", "newcomer"}
        assert not shown(workspace, "newcomer")[0]

    def test_a_second_release_resumes_nobody(self, workspace: Workspace) -> None:
        pause(workspace, "everybody")
        work(workspace, "alice", "s-1")
        steer(workspace, "release_agents")
        steer(workspace, "pause_agent", agent_id="alice")
        assert steer(workspace, "release_agents")["rows"] == {}
        assert workspace.stops.is_paused("alice")

    def test_an_agent_that_began_while_the_others_were_paused_is_paused_too(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is in no list, and its session read its state before the pause of everybody."""
        work(workspace, "bob", "s-0")
        control: Callable[..., Any] = workspace.session_zone.control
        begun: list[ClientSession] = []

        def begin_first(*arguments: Any, **more: Any) -> Any:
            if not begun:
                begun.append(work(workspace, "alice", "s-1"))
            return control(*arguments, **more)

        monkeypatch.setattr(workspace.session_zone, "control", begin_first)
        assert set(steer(workspace, "stop_agents", agents=["bob"], everybody=True)["rows"]) == {
            "alice",
            "bob",
        }

    async def test_a_release_reaches_a_session_that_begins_at_the_same_time(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It begins after the release has listed the agents, and before the row of the release."""
        await asyncio.to_thread(pause, workspace, "everybody")
        control: Callable[..., Any] = workspace.session_zone.control
        loop, has_obeyed = asyncio.get_running_loop(), Event()
        runs: list[Future[str]] = []

        async def run() -> str:
            async with workspace.sessions.begin("alice", chat(SAYS), messages=HELLO) as session:
                running = asyncio.create_task(session.run())
                await status_is(session, "paused")
                has_obeyed.set()
                return (await asyncio.wait_for(running, PATIENCE)).status

        def begin_after(*arguments: Any, **more: Any) -> Any:
            row = control(*arguments, **more)
            if not runs:
                runs.append(asyncio.run_coroutine_threadsafe(run(), loop))
                assert has_obeyed.wait(PATIENCE)
            return row

        monkeypatch.setattr(workspace.session_zone, "control", begin_after)
        rows = (await asyncio.to_thread(steer, workspace, "release_agents"))["rows"]
        assert set(rows) == {"alice", "bob"}
        assert await asyncio.wrap_future(runs[0]) == "done"


def test_a_cancelled_pause_is_over(workspace: Workspace) -> None:
    """A person who ends the paused agent has decided about it."""
    pause(workspace, "agent")
    steer(workspace, CANCEL, agent_id="alice")
    work(workspace, "alice", "s-1")
    assert not workspace.stops.is_paused("alice")
    assert not shown(workspace, "alice")[0]


def test_a_pause_of_one_session_is_for_that_session(workspace: Workspace) -> None:
    work(workspace, "alice", "s-1")
    steer(workspace, "pause_agent", agent_id="alice", session_id="s-1")
    assert workspace.stops.is_paused("alice")
    assert shown(workspace, "alice")[0]
    work(workspace, "alice", "s-2")
    assert not workspace.stops.is_paused("alice")
    assert not shown(workspace, "alice")[0]
