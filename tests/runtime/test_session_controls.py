"""What people say to a session in every status: pause, resume, end, messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from runtime.scripted import Scripted, Speaker, at_work, say, status_is, until
from runtime.weather import Calls, Model, call, calling, offered
from runtime.working import ASK, HELLO, SAYS, Held, asked_in, chat, deliver, held_tool, is_whole, results
from watchroom import Workspace
from watchroom.features.sessions.runtime import (
    ChatAgent,
    Finish,
    RequestHumanPrompt,
    RuntimeConfig,
    UserMessage,
)
from watchroom.texts import Language


class TestPausing:
    async def test_what_a_model_is_saying_is_cut_short_and_asked_again(self, workspace: Workspace) -> None:
        speaker = Speaker()
        agent = ChatAgent(model_runtime=speaker)
        async with (
            workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1") as session,
            at_work(session),
        ):
            await speaker.speaks.wait()
            assert say(workspace, "pause_agent", agent_id="alice", session_id="s1")["success"]
            await status_is(session, "paused")
            assert speaker.is_closed
            assert [message.role for message in session.state.messages] == ["user"]
            speaker.speaks.clear()
            say(workspace, "resume_agent", agent_id="alice")
            await speaker.speaks.wait()
            assert session.state.status == "running" or session.state.status == "idle"

    @pytest.mark.parametrize("word", ["pause_agent", "cancel_agent"])
    async def test_a_tool_that_is_at_work_ends_and_is_kept(self, workspace: Workspace, word: str) -> None:
        held = Held()
        agent = chat(calling(call("work")), SAYS, tools={"work": held_tool(held)})
        async with workspace.sessions.begin("alice", agent) as session, at_work(session):
            await held.began.wait()
            say(workspace, word, agent_id="alice")
            deliver(workspace, session)
            held.may_end.set()
            await status_is(session, "paused" if word == "pause_agent" else "cancelled")
            assert not held.was_cancelled
            assert results(session.state) == {"call_1": "finished"}

    async def test_a_tool_that_hangs_is_left_when_the_end_is_wanted_twice(self, workspace: Workspace) -> None:
        held = Held()
        agent = chat(calling(call("work")), SAYS, tools={"work": held_tool(held)})
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            await held.began.wait()
            say(workspace, "cancel_agent", agent_id="alice")
            say(workspace, "cancel_agent", agent_id="alice")
            async with asyncio.timeout(20):
                state = await run
        assert (state.status, held.was_cancelled) == ("cancelled", True)
        assert results(state)["call_1"]["error"] == "cancelled"

    async def test_before_it_began(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS), messages=HELLO) as session:
            say(workspace, "pause_agent", agent_id="alice")
            deliver(workspace, session)
            async with at_work(session) as run:
                await status_is(session, "paused")
                assert session.state.paused_from == "idle"
                say(workspace, "resume_agent", agent_id="alice")
                assert (await run).status == "done"

    async def test_while_it_waits_for_a_person_who_answers_meanwhile(self, workspace: Workspace) -> None:
        tool = Calls("ran")
        agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            say(workspace, "pause_agent", agent_id="alice")
            await status_is(session, "paused")
            say(workspace, "answer_request", request=number, approved=True)
            await until(lambda: session.state.asked is None)
            assert (session.state.status, tool.given) == ("paused", [])
            say(workspace, "resume_agent", agent_id="alice")
            assert (await run).status == "done"
            assert len(tool.given) == 1

    async def test_while_it_waits_for_a_person_who_answers_later(self, workspace: Workspace) -> None:
        agent = chat(calling(call("tool")), SAYS, tools={"tool": Calls("ran")}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            for word, status in (("pause_agent", "paused"), ("resume_agent", "waiting_for_human_input")):
                say(workspace, word, agent_id="alice")
                await status_is(session, status)
            say(workspace, "answer_request", request=number, approved=True)
            assert results(await run) == {"call_1": "ran"}

    async def test_a_second_pause_and_a_needless_resume_change_nothing(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            for word in ("resume_agent", "pause_agent", "pause_agent"):
                say(workspace, word, agent_id="alice")
            deliver(workspace, session)
            async with at_work(session) as run:
                await status_is(session, "paused")
                say(workspace, "resume_agent", agent_id="alice")
                state = await run
        assert [event.type for event in state.events][:2] == ["paused", "resumed"]
        assert [event.type for event in state.events].count("paused") == 1

    async def test_an_error_is_resumed(self, workspace: Workspace) -> None:
        agent = chat(OSError("unplugged"), SAYS)
        async with workspace.sessions.begin("alice", agent) as session:
            assert (await session.run()).status == "error"
            async with at_work(session, stay=True) as run:
                say(workspace, "resume_agent", agent_id="alice")
                await status_is(session, "done")
                assert session.state.error is None
                say(workspace, "resume_agent", agent_id="alice")
                say(workspace, "pause_agent", agent_id="alice")
                say(workspace, "cancel_agent", agent_id="alice", reason="enough")
                assert (await run).status == "cancelled"


class TestCancelling:
    async def test_what_a_model_is_saying_is_cut_short(self, workspace: Workspace) -> None:
        speaker = Speaker()
        agent = ChatAgent(model_runtime=speaker)
        async with (
            workspace.sessions.begin("alice", agent, messages=HELLO) as session,
            at_work(session) as run,
        ):
            await speaker.speaks.wait()
            say(workspace, "cancel_agent", agent_id="alice", reason="wrong task")
            state = await run
        assert (state.status, speaker.is_closed) == ("cancelled", True)
        last = state.events[-1]
        assert last.type == "cancelled"
        assert (last.by, last.reason) == ("human:dana", "wrong task")

    async def test_open_calls_get_a_result_and_the_request_is_withdrawn(self, workspace: Workspace) -> None:
        agent = chat(calling(call("tool", "c1"), call("tool", "c2")), tools={"tool": Calls()}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            say(workspace, "cancel_agent", agent_id="alice")
            state = await run
        assert is_whole(state)
        assert {told["error"] for told in results(state).values()} == {"cancelled"}
        late = say(workspace, "answer_request", request=number, approved=True)
        assert late["error"] == "request_closed"
        assert "human:dana ended its session" in late["message"]
        assert state.asked is None

    async def test_who_approves_after_that_is_told_so_before_the_session_has_heeded_it(
        self, workspace: Workspace
    ) -> None:
        tool = Calls()
        agent = chat(calling(call("tool", "c1")), tools={"tool": tool}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session:
            async with at_work(session):
                number = await asked_in(workspace, session)
            say(workspace, "cancel_agent", agent_id="alice", session_id=session.state.session_id)
            late = say(workspace, "answer_request", by="eve", request=number, approved=True)
            assert late["error"] == "request_closed"
            assert "human:dana ended its session" in late["message"]
            state = await session.run()
        assert (state.status, tool.given) == ("cancelled", [])
        (kept,) = [row for row in workspace.journal.rows(limit=1000) if row.error == "request_closed"]
        assert (kept.actor, kept.outcome) == ("human:eve", "failed")

    @pytest.mark.parametrize(
        ("language", "message"),
        [
            ("en", "human:dana ended the session before this call had a result: too dear."),
            ("zh", "human:dana 在这次调用得到结果之前结束了会话：too dear。"),
        ],
    )
    async def test_who_ended_it_and_why_stands_in_the_language_of_the_model(
        self, workspace: Workspace, language: Language, message: str
    ) -> None:
        agent = chat(calling(call("tool")), tools={"tool": Calls()}, policies=ASK)
        config = RuntimeConfig(language=language)
        async with workspace.sessions.begin("alice", agent, config) as session, at_work(session) as run:
            await asked_in(workspace, session)
            say(workspace, "cancel_agent", agent_id="alice", reason="too dear")
            told = results(await run)["call_1"]
        assert told == {"success": False, "error": "cancelled", "message": message}

    async def test_while_paused(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat()) as session, at_work(session) as run:
            say(workspace, "pause_agent", agent_id="alice")
            say(workspace, "cancel_agent", agent_id="alice")
            deliver(workspace, session)
            state = await run
        assert (state.status, state.paused_from) == ("cancelled", None)

    async def test_it_is_for_good(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as session:
            say(workspace, "cancel_agent", agent_id="alice")
            say(workspace, "resume_agent", agent_id="alice")
            say(workspace, "cancel_agent", agent_id="alice")
            say(workspace, "send_message", to="alice", payload={"text": "Hello?"})
            deliver(workspace, session)
            state = await session.run(stay=True)
        assert [event.type for event in state.events] == ["cancelled"]
        async with workspace.sessions.resume("alice", "s1", chat()) as session:
            assert await session.run() == state

    async def test_one_session_alone(self, workspace: Workspace) -> None:
        sessions = workspace.sessions
        async with (
            sessions.begin("alice", chat(SAYS), session_id="s1") as one,
            sessions.begin("alice", chat(SAYS), session_id="s2") as two,
        ):
            assert say(workspace, "cancel_agent", agent_id="alice", session_id="s1")["success"]
            deliver(workspace, one)
            assert ((await one.run()).status, (await two.run()).status) == ("cancelled", "done")

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"agent_id": "nobody"}, "unknown_agent"),
            ({"agent_id": "bob"}, "session_not_found"),
            ({"agent_id": "alice", "session_id": "s9"}, "session_not_found"),
            ({"agent_id": "alice", "session_id": "a/b"}, "invalid_session"),
            ({"agent_id": "alice", "session_id": ""}, "invalid_session"),
        ],
    )
    async def test_nobody_is_there_to_hear(
        self, workspace: Workspace, given: dict[str, str], error: str
    ) -> None:
        async with workspace.sessions.begin("alice", chat(), session_id="s1"):
            assert say(workspace, "cancel_agent", **given)["error"] == error

    async def test_a_word_that_was_refused_is_not_heard(self, workspace: Workspace) -> None:
        async with (
            workspace.sessions.begin("alice", chat(SAYS, SAYS)) as session,
            at_work(session, stay=True),
        ):
            await status_is(session, "done")
            too_long = "x" * 100_001
            assert not say(workspace, "send_message", to="alice", payload={"text": too_long})["success"]
            assert not say(workspace, "cancel_agent", agent_id="alice", session_id="s9")["success"]
            say(workspace, "send_message", to="alice", payload={"text": "Hello?"})
            await until(lambda: session.state.status == "cancelled" or len(session.state.messages) == 3)
            said = [message for message in session.state.messages if isinstance(message, UserMessage)]
            assert said == [UserMessage(content="Hello?", author="human:dana")]

    async def test_agents_steer_nobody(self, workspace: Workspace) -> None:
        box = workspace.tools("alice")
        for tool in ("cancel_agent", "pause_agent", "resume_agent", "answer_request"):
            assert box.dispatch_tool_call(tool, {})["error"] == "permission_denied"


class TestMessages:
    async def test_a_message_waits_until_the_calls_have_their_results(self, workspace: Workspace) -> None:
        held = Held()
        model = Model(calling(call("work", "c1"), call("work", "c2")), SAYS)
        agent = ChatAgent(offered({"work": held_tool(held)}), model_runtime=model)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            await held.began.wait()
            assert say(workspace, "send_message", to="alice", payload={"text": "By the way"})["success"]
            deliver(workspace, session)
            held.may_end.set()
            state = await run
        assert is_whole(state)
        assert [message.role for message in state.messages] == [
            "assistant",
            "tool",
            "tool",
            "user",
            "assistant",
        ]
        assert model.asked[1].messages[-1] == UserMessage(content="By the way", author="human:dana")

    async def test_a_message_that_waits_outlives_its_process(self, workspace: Workspace, root: Path) -> None:
        """It came before a pause that was heeded, and was not lost when the process ended."""
        agent = chat(calling(call("tool")), SAYS, tools={"tool": Calls("ran")}, policies=ASK)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session, at_work(session):
            number = await asked_in(workspace, session)
            say(workspace, "send_message", to="alice", payload={"text": "By the way"})
            say(workspace, "pause_agent", agent_id="alice")
            await status_is(session, "paused")
        with Workspace.open(root) as later:
            agent = chat(SAYS, SAYS, tools={"tool": Calls("ran")}, policies=ASK)
            say(later, "answer_request", request=number, approved=True)
            say(later, "resume_agent", agent_id="alice")
            async with later.sessions.resume("alice", "s1", agent) as session:
                state = await session.run()
        assert is_whole(state)
        said = [message.content for message in state.messages if isinstance(message, UserMessage)]
        assert said == ["By the way"]
        assert state.status == "done"

    async def test_a_message_begins_an_ended_session_again(self, workspace: Workspace) -> None:
        model = Model(SAYS, [{"content": "You are welcome."}])
        async with workspace.sessions.begin(
            "alice", ChatAgent(model_runtime=model), messages=HELLO
        ) as session:
            assert (await session.run()).status == "done"
            say(workspace, "send_message", to="alice", payload={"text": "Thanks"})
            deliver(workspace, session)
            state = await session.run()
        assert [message.role for message in state.messages] == ["user", "assistant", "user", "assistant"]
        assert state.events[-1].type == "done"

    async def test_a_message_to_one_that_waits_comes_before_the_answer(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="Which city?"), Finish())
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            say(workspace, "send_message", to="alice", payload={"text": "In a moment"})
            await until(lambda: bool(session.state.messages))
            assert session.state.status == "waiting_for_human_input"
            say(workspace, "answer_request", request=number, text="Köln")
            state = await run
        assert [message.content for message in state.messages] == ["In a moment", "Köln"]

    async def test_words_are_heeded_in_the_order_of_their_rows(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as session:
            for content in ("one", "two", "three"):
                say(workspace, "send_message", to="alice", payload={"text": content})
            mail = workspace.session_zone.controls("alice/s1", 0)
            for each in (mail[2], mail[0], mail[1], mail[2], mail[0]):
                session.deliver(each)
            state = await session.run()
        assert [message.content for message in state.messages][:3] == ["one", "two", "three"]
        assert len(state.messages) == 4


class TestTheNextSession:
    async def test_what_is_said_between_two_sessions_is_heard_by_the_next(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            await session.run()
        say(workspace, "send_message", to="alice", payload={"text": "And now in French."})
        say(workspace, "pause_agent", agent_id="alice")
        say(workspace, "cancel_agent", agent_id="alice")
        async with workspace.sessions.begin("alice", chat(SAYS, SAYS)) as session:
            state = await session.run()
        assert state.status == "done", "who held or ended the agent then did not mean this session"
        assert "And now in French." in [message.content for message in state.messages]
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            state = await session.run()
        assert "And now in French." not in [message.content for message in state.messages]

    async def test_what_one_session_has_still_to_hear_is_not_for_another(self, workspace: Workspace) -> None:
        speaker = Speaker("Hello")
        async with (
            workspace.sessions.begin("alice", ChatAgent(model_runtime=speaker)) as first,
            at_work(first),
        ):
            await speaker.speaks.wait()
            say(
                workspace,
                "send_message",
                to=f"alice/{first.state.session_id}",
                payload={"text": "Hush."},
            )
            async with workspace.sessions.begin("alice", chat(SAYS)) as second:
                state = await second.run()
        assert "Hush." not in [message.content for message in state.messages]
