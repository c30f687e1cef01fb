"""A model's rate limit parks the session: it is resumed by a person, or once at the reset with a leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from clock import HOUR, JumpingClock
from runtime.models.server import Server, Step, answering, said, serving
from runtime.scripted import at_work, say, status_is, until
from watchroom import Workspace
from watchroom.features.overview.model import Need, urgent_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.rows import parking_of
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.features.sessions.runtime.models import OpenAICompatible, RetryPolicy

pytestmark = pytest.mark.sqlite("A server has its own clock.")
PATH = "alice/s1"
HELLO = ({"role": "user", "content": "Hello"},)
BUSY = b'{"error": {"message": "Rate limit reached"}}'
ANSWER = answering(said("Done"))
QUICK = RetryPolicy(retries=0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch)


def limited(retry_after: str = "3600", status: int = 429) -> Step:
    head = {"retry-after": retry_after} if retry_after else {}
    return answering(BUSY, status=status, headers=head)


@asynccontextmanager
async def asking(*steps: Step, policy: RetryPolicy = QUICK) -> AsyncIterator[tuple[Server, ChatAgent]]:
    """A server that answers with ``steps``, and an agent whose model it is."""
    async with (
        serving(*steps) as server,
        OpenAICompatible(server.url, "m", retry_policy=policy) as model,
    ):
        yield server, ChatAgent(model_runtime=model)


def needs(workspace: Workspace) -> list[Need]:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return [*urgent_needs(model, workspace.journal.now())]


def shown_status(workspace: Workspace) -> str:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    view = model.agent("alice")
    assert view is not None
    return view.status(workspace.journal.now())


def resets(workspace: Workspace) -> int | None:
    head = workspace.journal.head("session", PATH)
    assert head is not None
    parking = parking_of(head)
    assert parking is not None
    return parking.resets


async def test_a_limit_with_a_reset_is_one_need_and_resumed_once_with_leave(
    workspace: Workspace, clock: JumpingClock
) -> None:
    async with asking(limited(), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session) as run:
            await status_is(session, "parked")
            (need,) = needs(workspace)
            assert (need.kind, need.agent, need.answers[0]) == ("parked", "alice", "leave")
            assert shown_status(workspace) == "parked"
            left = (resets(workspace) or 0) - workspace.journal.now()
            assert 3590 * 10**9 < left <= 3600 * 10**9
            assert say(workspace, "resume_agent", agent_id="alice", when="reset")["success"]
            assert needs(workspace) == []
            await asyncio.sleep(0.8)
            assert (session.state.status, len(server.requests)) == ("parked", 1)
            clock.ahead = HOUR
            state = await run
        assert (state.status, len(server.requests)) == ("done", 2)
        assert state.messages[-1].content == "Done"


async def test_an_unknown_reset_resumes_nothing_by_itself(workspace: Workspace, clock: JumpingClock) -> None:
    async with asking(limited("", 529), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session) as run:
            await status_is(session, "parked")
            (need,) = needs(workspace)
            assert (need.kind, need.answers[0]) == ("parked", "resume")
            assert resets(workspace) is None
            refused = say(workspace, "resume_agent", agent_id="alice", when="reset")
            assert refused["error"] == "no_reset"
            clock.ahead = 24 * HOUR
            await asyncio.sleep(0.8)
            assert (session.state.status, len(server.requests)) == ("parked", 1)
            say(workspace, "resume_agent", agent_id="alice")
            state = await run
        assert (state.status, len(server.requests)) == ("done", 2)


async def test_a_wrong_reset_parks_again_and_is_not_retried(
    workspace: Workspace, clock: JumpingClock
) -> None:
    async with asking(limited(), limited(), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session) as run:
            await status_is(session, "parked")
            say(workspace, "resume_agent", agent_id="alice", when="reset")
            clock.ahead = HOUR + 10**9
            await until(lambda: len(server.requests) == 2)
            await status_is(session, "parked")
            (need,) = needs(workspace)
            assert need.kind == "parked"
            clock.ahead = 3 * HOUR
            await asyncio.sleep(1.2)
            assert (session.state.status, len(server.requests)) == ("parked", 2)
            assert [each.kind for each in needs(workspace)] == ["parked"]
            say(workspace, "resume_agent", agent_id="alice")
            assert (await run).status == "done"


async def test_a_parked_session_is_parked_after_a_restart_and_resumed_once(
    workspace: Workspace, root: Path, clock: JumpingClock
) -> None:
    async with asking(limited(), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session):
            await status_is(session, "parked")
        say(workspace, "resume_agent", agent_id="alice", when="reset")
        workspace.close()
        with Workspace.open(root, create=False) as again:
            assert shown_status(again) == "parked"
            resumed = again.sessions.resume("alice", "s1", agent)
            async with resumed as session, at_work(session) as run:
                await asyncio.sleep(0.8)
                assert (session.state.status, len(server.requests)) == ("parked", 1)
                clock.ahead = HOUR
                assert (await run).status == "done"
            resumed = again.sessions.resume("alice", "s1", agent)
            async with resumed as session, at_work(session) as run:
                assert (await run).status == "done"
        assert len(server.requests) == 2


@pytest.mark.parametrize("word", ["pause_agent", "cancel_agent"])
async def test_a_leave_never_continues_an_agent_that_a_person_stopped(
    workspace: Workspace, clock: JumpingClock, word: str
) -> None:
    async with asking(limited(), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session):
            await status_is(session, "parked")
            say(workspace, "resume_agent", agent_id="alice", when="reset")
            say(workspace, word, agent_id="alice")
            await status_is(session, "paused" if word == "pause_agent" else "cancelled")
            clock.ahead = 2 * HOUR
            await asyncio.sleep(0.8)
            assert len(server.requests) == 1
        assert needs(workspace) == []


async def test_a_message_of_a_person_resumes_but_not_that_of_an_agent(
    workspace: Workspace, clock: JumpingClock
) -> None:
    async with asking(limited(), ANSWER) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session) as run:
            await status_is(session, "parked")
            workspace.messages.notify("alice", "Are you there?")
            await asyncio.sleep(0.5)
            assert (session.state.status, len(server.requests)) == ("parked", 1)
            say(workspace, "send_message", to="alice", payload={"text": "Go on"})
            assert (await run).status == "done"


async def test_a_server_that_names_a_late_reset_is_not_asked_again(workspace: Workspace) -> None:
    """A reset beyond the longest wait between retries parks the session without a retry."""
    async with asking(limited("3600"), policy=RetryPolicy(base=0.01)) as (server, agent):
        begun = workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1")
        async with begun as session, at_work(session):
            await status_is(session, "parked")
            assert len(server.requests) == 1
