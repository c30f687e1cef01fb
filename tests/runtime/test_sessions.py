"""Sessions: their ids, and what they have used."""

from __future__ import annotations

import asyncio

import pytest
from runtime.scripted import Scripted, Speaker, at_work
from runtime.weather import Calls, call, calling
from runtime.working import SAYS, chat
from watchroom import Workspace
from watchroom.errors import InvalidAgentId, InvalidSession, SessionExists, SessionNotFound, UnknownAgent
from watchroom.features.sessions.runtime import ChatAgent, RequestHumanPrompt, RuntimeConfig


class TestIds:
    @pytest.mark.parametrize("name", ["a/b", "", "..", "-x", "x" * 65, "é", "a b", "a\n", "\ud800"])
    async def test_an_id_that_breaks_the_rules_is_refused(self, workspace: Workspace, name: str) -> None:
        with pytest.raises(InvalidSession):
            async with workspace.sessions.begin("alice", chat(), session_id=name):
                pass
        with pytest.raises(InvalidSession):
            async with workspace.sessions.resume("alice", name, chat()):
                pass
        with pytest.raises(InvalidSession):
            workspace.sessions.state("alice", name)
        assert workspace.sessions.list() == []

    async def test_an_agent_must_be_known(self, workspace: Workspace) -> None:
        with pytest.raises(UnknownAgent):
            async with workspace.sessions.begin("nobody", chat()):
                pass
        with pytest.raises(InvalidAgentId):
            workspace.sessions.state("../alice", "s1")

    async def test_an_id_is_taken_once(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(), session_id="s1"):
            with pytest.raises(SessionExists):
                async with workspace.sessions.begin("alice", chat(), session_id="s1"):
                    pass
            async with workspace.sessions.begin("bob", chat(), session_id="s1"):
                pass
        assert [(head.agent, head.id, head.status) for head in workspace.sessions.list()] == [
            ("alice", "s1", "idle"),
            ("bob", "s1", "idle"),
        ]
        assert [head.agent for head in workspace.sessions.list("bob")] == ["bob"]

    async def test_a_session_that_is_not_there(self, workspace: Workspace) -> None:
        with pytest.raises(SessionNotFound):
            async with workspace.sessions.resume("alice", "s1", chat()):
                pass


class TestCounting:
    async def test_rows_tell_what_was_used(self, workspace: Workspace) -> None:
        usage = {"usage": {"input_tokens": 10, "output_tokens": 2}}
        agent = chat([*calling(call("tool")), usage], [*SAYS, usage], tools={"tool": Calls()})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            state = await session.run()
        row = workspace.journal.head("session", "alice/s1")
        assert row is not None
        assert row.detail["tokens"] == [20, 4]
        assert (row.detail["calls"], row.detail["step"], row.detail["status"]) == (
            1,
            state.step_count,
            "done",
        )

    async def test_a_step_that_changes_nothing_is_no_row(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="?"))
        async with workspace.sessions.begin("alice", agent) as session:
            await session.step()
            before = workspace.journal.last_seq()
            assert (await session.step()).events == ()
            assert workspace.journal.last_seq() == before

    async def test_a_models_words_can_be_read_while_they_come(self, workspace: Workspace) -> None:
        speaker = Speaker("Once upon a time")
        heard: list[str] = []
        config = RuntimeConfig(on_event=lambda event: heard.append(event.type))
        agent = ChatAgent(model_runtime=speaker)
        async with workspace.sessions.begin("alice", agent, config) as session, at_work(session):
            told = asyncio.Event()
            loop = asyncio.get_running_loop()

            def tell() -> None:
                loop.call_soon_threadsafe(told.set)

            end = workspace.subscribe(tell)
            await speaker.speaks.wait()
            await asyncio.wait_for(told.wait(), 20)
            end()
            rows = workspace.journal.rows()
            assert [workspace.journal.content(row.seq) for row in rows if row.tool == "llm_stream"] == [
                "Once upon a time"
            ]
        assert heard == ["llm_start", "llm_stream"]
