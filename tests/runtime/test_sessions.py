"""Sessions at work: what people say to them and answer, in every status, and who may run them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from runtime.scripted import Scripted, Speaker, at_work, open_request, say, status_is, until
from runtime.weather import Calls, Model, call, calling
from watchroom import Json, Workspace
from watchroom.errors import (
    InvalidAgentId,
    InvalidSession,
    JournalError,
    NotText,
    RequestNotFound,
    SessionExists,
    SessionNotFound,
    SessionTaken,
    UnknownAgent,
)
from watchroom.requests import Answer, Option, Request
from watchroom.runtime import (
    ASK_PERSON,
    AgentState,
    AgentTool,
    AssistantMessage,
    CallOrigin,
    CallTool,
    ChatAgent,
    Finish,
    Limits,
    Policies,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    Session,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from watchroom.runtime.state import call_key
from watchroom.toolbox.agent_tools import agent_tools

HELLO = ({"role": "user", "content": "Hello"},)
ASK = Policies(default="ask")
SAYS: Any = [{"content": "Done."}]


def chat(*answers: Any, tools: Mapping[str, Any] | None = None, **given: Any) -> ChatAgent:
    return ChatAgent(tools or {}, model_runtime=Model(*answers), **given)


def results(state: AgentState) -> dict[str, Any]:
    """What the model was told of each call."""
    return {
        message.tool_call_id: json.loads(message.content)
        for message in state.messages
        if isinstance(message, ToolMessage)
    }


def is_whole(state: AgentState) -> bool:
    """Whether each call of the model has one result, and nothing stands between them."""
    expected: list[str] = []
    for message in state.messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in expected:
                return False
            expected.remove(message.tool_call_id)
        elif expected:
            return False
        elif isinstance(message, AssistantMessage):
            expected = [each.id for each in message.tool_calls]
    return not expected


class Held:
    """A tool that is at work until it is let go."""

    def __init__(self, result: Json = "finished") -> None:
        self.result = result
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.times = 0
        self.was_cancelled = False

    async def __call__(self, arguments: Mapping[str, Json]) -> Json:
        self.times += 1
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return self.result


def held_tool(held: Held, **hints: Any) -> AgentTool:
    async def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return await held(arguments)

    return AgentTool("work", run, {}, **hints)


async def asked_in(workspace: Workspace, session: Session) -> int:
    """The number of the request that the session waits for, once it is open."""
    await status_is(session, "waiting_for_human_input")
    path = f"{session.path}/{session.state.step_count}"
    await until(lambda: workspace.journal.version("request", path, 1) is not None)
    return open_request(workspace, path)[0]


def deliver(workspace: Workspace, session: Session) -> None:
    """What was said has arrived."""
    for mail in workspace.session_zone.steering(session.path, 0):
        session.takes(mail)


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


class TestApproving:
    async def test_a_rejected_call_is_not_run_and_the_model_is_told_why(self, workspace: Workspace) -> None:
        tool = Calls()
        agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
        async with (
            workspace.sessions.begin("alice", agent, messages=HELLO) as session,
            at_work(session) as run,
        ):
            number = await asked_in(workspace, session)
            answer = say(workspace, "answer_request", request=number, approved=False, reason="too dear")
            assert (answer["success"], answer["outcome"]) == (True, "rejected")
            state = await run
        assert tool.given == []
        assert results(state)["call_1"]["error"] == "rejected"
        assert results(state)["call_1"]["message"] == "human:dana rejected this call: too dear."
        assert state.status == "done"

    async def test_calls_of_one_turn_are_decided_one_by_one(self, workspace: Workspace) -> None:
        tool = Calls("ran")
        calls = [call("tool", f"c{n}", n=n) for n in range(4)]
        agent = chat(calling(*calls), SAYS, tools={"tool": tool}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            answer = say(
                workspace,
                "answer_request",
                request=number,
                decisions=[
                    {"call_id": "c0", "approved": True},
                    {"call_id": "c1", "approved": False, "reason": "not this one"},
                    {"call_id": "c2", "approved": True, "arguments": '{"n": 22}'},
                    {"call_id": "c3", "approved": True},
                ],
            )
            assert answer["outcome"] == "mixed"
            state = await run
        assert tool.given == [{"n": 0}, {"n": 22}, {"n": 3}]
        assert is_whole(state)
        told = results(state)
        assert (told["c0"], told["c3"]) == ("ran", "ran")
        assert told["c1"]["message"].endswith("not this one.")
        assert told["c2"] == {"edited_arguments": {"n": 22}, "result": "ran"}

    async def test_calls_that_need_no_approval_run_before_the_others_are_asked(
        self, workspace: Workspace
    ) -> None:
        free, dear = Calls("free"), Calls("dear")
        calls = [call("dear", "c1"), call("free", "c2"), call("dear", "c3"), call("gone", "c4")]
        policies = Policies(tools={"dear": "ask"})
        agent = chat(calling(*calls), SAYS, tools={"dear": dear, "free": free}, policies=policies)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            assert (len(free.given), dear.given) == (1, [])
            assert [each.id for each in session.state.pending_tools_calling] == ["c1", "c3"]
            say(workspace, "answer_request", request=number, approved=True)
            state = await run
        assert is_whole(state)
        assert len(dear.given) == 2

    async def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays_open(
        self, workspace: Workspace
    ) -> None:
        agent = chat(calling(call("tool")), SAYS, tools={"tool": Calls()}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            misfits: list[dict[str, Any]] = [
                {},
                {"text": "yes"},
                {"approved": True, "text": "yes"},
                {"approved": True, "values": ["yes"]},
                {"decisions": []},
                {"decisions": [{"call_id": "other", "approved": True}]},
                {"decisions": [{"call_id": "call_1", "approved": True}] * 2},
                {"decisions": [{"call_id": "call_1", "approved": True}], "approved": True},
                {"decisions": [{"call_id": "call_1", "approved": True, "arguments": "[1]"}]},
                {"decisions": [{"call_id": "call_1", "approved": True, "arguments": '{"n": NaN}'}]},
                {"decisions": [{"call_id": "call_1", "approved": True, "arguments": "{"}]},
            ]
            for misfit in misfits:
                assert say(workspace, "answer_request", request=number, **misfit)["error"] == "invalid_answer"
            assert say(workspace, "answer_request", request=number, approved=True)["success"]
            assert (await run).status == "done"

    async def test_only_requests_can_be_answered(self, workspace: Workspace) -> None:
        for number in (1, 10_000, 2**62):
            told = say(workspace, "answer_request", request=number, approved=True)
            assert told["error"] == "request_not_found"
        with pytest.raises(RequestNotFound):
            workspace.requests.expire("alice/s1/1")

    @pytest.mark.parametrize("arguments", ['{"path": "half \\ud83d"}', '{"path": "\\udc00"}'])
    async def test_half_characters_in_arguments_do_no_harm(
        self, workspace: Workspace, arguments: str
    ) -> None:
        wanted = call("tool").model_copy(
            update={"function": call("tool").function.model_copy(update={"arguments": arguments})}
        )
        agent = chat(calling(wanted), SAYS, tools={"tool": Calls()}, policies=ASK)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            say(workspace, "answer_request", request=number, approved=True)
            assert (await run).status == "done"


OPTIONS = (Option("Red wine", "red"), Option("White wine", "white"), Option("Water", "water"))


class TestAnswering:
    async def answered(self, workspace: Workspace, agent: Any, **answer: Any) -> tuple[AgentState, str]:
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            outcome = say(workspace, "answer_request", request=number, **answer)
            assert outcome["success"], outcome
            return await run, outcome["outcome"]

    async def test_a_text_is_a_message_of_its_own(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="Which city?"), Finish())
        state, outcome = await self.answered(workspace, agent, text="Köln")
        assert state.messages == (UserMessage(content="Köln", author="human:dana"),)
        assert outcome == "replied"

    async def test_a_text_is_the_result_of_the_call_that_asked(self, workspace: Workspace) -> None:
        asking = calling(call(ASK_PERSON, question="Which city?"))
        state, _ = await self.answered(workspace, chat(asking, SAYS, asks=True), text="Köln")
        assert results(state) == {"call_1": {"success": True, "answer": "Köln", "by": "human:dana"}}
        assert is_whole(state)

    @pytest.mark.parametrize("values", [["white"], ["red", "water"]])
    async def test_a_choice_is_a_message_of_its_own(self, workspace: Workspace, values: list[str]) -> None:
        multi = len(values) > 1
        agent = Scripted(RequestHumanSelect(prompt="What?", options=OPTIONS, multi=multi), Finish())
        state, outcome = await self.answered(workspace, agent, values=values)
        assert state.messages == (UserMessage(content="\n".join(values), author="human:dana"),)
        assert outcome == "chosen"

    @pytest.mark.parametrize("values", [["b"], ["c", "a"]])
    async def test_a_choice_is_the_result_of_the_call_that_asked(
        self, workspace: Workspace, values: list[str]
    ) -> None:
        asking = call(ASK_PERSON, question="Which?", options=["a", "b", "c"], several=len(values) > 1)
        state, _ = await self.answered(workspace, chat(calling(asking), SAYS, asks=True), values=values)
        assert results(state)["call_1"]["answer"] == values

    async def test_a_question_without_a_question_is_told_to_the_model(self, workspace: Workspace) -> None:
        agent = chat(calling(call(ASK_PERSON, question=7)), SAYS, asks=True)
        async with workspace.sessions.begin("alice", agent) as session:
            assert results(await session.run())["call_1"]["error"] == "invalid_arguments"

    async def test_an_id_of_no_open_call_makes_no_result_of_the_answer(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="?", metadata={"tool_call_id": "gone"}), Finish())
        state, _ = await self.answered(workspace, agent, text="Köln")
        assert state.messages == (UserMessage(content="Köln", author="human:dana"),)
        assert is_whole(state)

    @pytest.mark.parametrize(
        ("multi", "misfit"),
        [
            (False, {}),
            (False, {"values": []}),
            (False, {"values": ["beer"]}),
            (False, {"values": ["red", "white"]}),
            (True, {"values": ["red", "red"]}),
            (True, {"values": ["red"], "text": "and white"}),
            (True, {"approved": True}),
        ],
    )
    async def test_a_choice_must_be_among_the_options(
        self, workspace: Workspace, multi: bool, misfit: dict[str, Any]
    ) -> None:
        row = workspace.requests.ask(
            "alice", "alice/s1/1", Request("select", "?", options=OPTIONS, multi=multi)
        )
        refused = say(workspace, "answer_request", request=row.seq, **misfit)
        assert refused["error"] == "invalid_answer"

    @pytest.mark.parametrize(
        "misfit", [{}, {"text": " \n"}, {"text": "x" * 100_001}, {"text": "x", "values": ["x"]}]
    )
    async def test_a_text_must_say_something(self, workspace: Workspace, misfit: dict[str, Any]) -> None:
        row = workspace.requests.ask("alice", "alice/s1/1", Request("prompt", "?"))
        assert say(workspace, "answer_request", request=row.seq, **misfit)["error"] == "invalid_answer"

    async def test_half_characters_are_refused(self, workspace: Workspace) -> None:
        row = workspace.requests.ask("alice", "alice/s1/1", Request("prompt", "?"))
        with pytest.raises(NotText):
            workspace.requests.answer("human:dana", row.seq, Answer(text="half \ud83d"))
        assert workspace.requests.ended("alice/s1/1") is None

    async def test_a_request_is_asked_once(self, workspace: Workspace) -> None:
        request = Request("prompt", "?")
        first = workspace.requests.ask("alice", "alice/s1/1", request)
        barrier = threading.Barrier(8)
        rows = []

        def ask(path: str) -> None:
            barrier.wait()
            rows.append(workspace.requests.ask("alice", path, request))

        threads = [threading.Thread(target=ask, args=("alice/s1/2",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert workspace.requests.ask("alice", "alice/s1/1", request) == first
        assert {row.version for row in rows} == {1}
        assert len({row.seq for row in rows}) == 1


class TestExpiring:
    @pytest.mark.parametrize(
        ("agent", "last"),
        [
            (lambda: chat(calling(call("tool")), SAYS, tools={"tool": Calls()}, policies=ASK), "no_answer"),
            (lambda: chat(calling(call(ASK_PERSON, question="?")), SAYS, asks=True), "no_answer"),
            (lambda: Scripted(RequestHumanPrompt(prompt="?"), Finish()), None),
            (lambda: Scripted(RequestHumanSelect(options=OPTIONS), Finish()), None),
        ],
    )
    async def test_without_an_answer_nothing_is_done_and_the_model_is_told(
        self, workspace: Workspace, agent: Callable[[], Any], last: str | None
    ) -> None:
        config = RuntimeConfig(ask_timeout=0.01)
        async with workspace.sessions.begin("alice", agent(), config, session_id="s1") as session:
            state = await session.run()
        assert state.status == "done"
        if last is None:
            assert isinstance(state.messages[-1], SystemMessage)
        else:
            (told,) = results(state).values()
            assert told["error"] == last
            assert is_whole(state)

    async def test_an_answer_that_comes_too_late_is_refused(self, workspace: Workspace) -> None:
        row = workspace.requests.ask("alice", "alice/s1/1", Request("prompt", "?", expires=1))
        told = say(workspace, "answer_request", request=row.seq, text="Köln")
        assert told["error"] == "request_expired"
        (kept,) = [row for row in workspace.journal.rows() if row.tool == "answer_request"]
        assert (kept.outcome, kept.error) == ("failed", "request_expired")
        assert "Köln" in (workspace.journal.content(kept.seq) or "")
        assert workspace.requests.expire("alice/s1/1").answer == Answer(expired=True)
        assert workspace.requests.expire("alice/s1/1").answer == Answer(expired=True)

    async def test_an_answer_that_was_first_counts(self, workspace: Workspace) -> None:
        row = workspace.requests.ask("alice", "alice/s1/1", Request("prompt", "?"))
        assert say(workspace, "answer_request", request=row.seq, text="Köln")["success"]
        ended = workspace.requests.expire("alice/s1/1")
        assert (ended.answer, ended.row.actor) == (Answer(text="Köln"), "human:dana")

    async def test_a_request_that_expires_and_is_answered_at_once_ends_once(
        self, workspace: Workspace
    ) -> None:
        for n in range(40):
            path = f"alice/s1/{n}"
            row = workspace.requests.ask("alice", path, Request("prompt", "?"))
            barrier = threading.Barrier(2)
            told: list[dict[str, Any]] = []

            def answer(number: int = row.seq, start: threading.Barrier = barrier, into: Any = told) -> None:
                start.wait()
                into.append(say(workspace, "answer_request", request=number, text="Köln"))

            thread = threading.Thread(target=answer)
            thread.start()
            barrier.wait()
            ended = workspace.requests.expire(path)
            thread.join()
            assert ended.answer is not None
            assert told[0]["success"] is not ended.answer.expired
            assert workspace.journal.version("request", path, 3) is None


class TestTwoAtOnce:
    async def test_of_two_people_one_counts_and_the_other_is_told(self, workspace: Workspace) -> None:
        for n in range(20):
            row = workspace.requests.ask("alice", f"alice/s1/{n}", Request("prompt", "?"))
            barrier = threading.Barrier(2)
            told: dict[str, dict[str, Any]] = {}

            def answer(by: str, number: int = row.seq, start: Any = barrier, into: Any = told) -> None:
                start.wait()
                into[by] = say(workspace, "answer_request", by, request=number, text=by)

            threads = [threading.Thread(target=answer, args=(by,)) for by in ("dana", "kim")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            (first,) = [by for by in told if told[by]["success"]]
            (second,) = [by for by in told if not told[by]["success"]]
            assert told[second]["error"] == "request_closed"
            assert f"human:{first}" in told[second]["message"]
            ended = workspace.requests.ended(f"alice/s1/{n}")
            assert ended is not None
            assert ended.answer == Answer(text=first)
            refused = workspace.journal.refused("request", f"alice/s1/{n}")
            assert [row.actor for row in refused] == [f"human:{second}"]

    async def test_an_answer_may_come_from_another_process(self, workspace: Workspace, root: Path) -> None:
        agent = chat(calling(call("tool")), SAYS, tools={"tool": Calls("ran")}, policies=ASK)
        program = (
            "import sys; from watchroom import Workspace\n"
            "with Workspace.open(sys.argv[1], create=False) as w:\n"
            "    box = w.tools_for_human('kim')\n"
            "    print(box.dispatch_tool_call('answer_request', {'request': int(sys.argv[2]), 'approved': True}))\n"
        )
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            other = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, str(root), str(number), stdout=subprocess.PIPE
            )
            output, _ = await other.communicate()
            assert b"'success': True" in output
            async with asyncio.timeout(20):
                assert results(await run) == {"call_1": "ran"}


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
        assert state.asked is None

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
            say(workspace, "send_message", to_agent="alice", content="Hello?")
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

    async def test_agents_steer_nobody(self, workspace: Workspace) -> None:
        box = workspace.tools("alice")
        for tool in ("cancel_agent", "pause_agent", "resume_agent", "send_message", "answer_request"):
            assert box.dispatch_tool_call(tool, {})["error"] == "permission_denied"


class TestMessages:
    async def test_a_message_waits_until_the_calls_have_their_results(self, workspace: Workspace) -> None:
        held = Held()
        model = Model(calling(call("work", "c1"), call("work", "c2")), SAYS)
        agent = ChatAgent([held_tool(held)], model_runtime=model)
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            await held.began.wait()
            assert say(workspace, "send_message", to_agent="alice", content="By the way")["success"]
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
            say(workspace, "send_message", to_agent="alice", content="By the way")
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
            say(workspace, "send_message", to_agent="alice", content="Thanks")
            deliver(workspace, session)
            state = await session.run()
        assert [message.role for message in state.messages] == ["user", "assistant", "user", "assistant"]
        assert state.events[-1].type == "done"

    async def test_a_message_to_one_that_waits_comes_before_the_answer(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="Which city?"), Finish())
        async with workspace.sessions.begin("alice", agent) as session, at_work(session) as run:
            number = await asked_in(workspace, session)
            say(workspace, "send_message", to_agent="alice", content="In a moment")
            await until(lambda: bool(session.state.messages))
            assert session.state.status == "waiting_for_human_input"
            say(workspace, "answer_request", request=number, text="Köln")
            state = await run
        assert [message.content for message in state.messages] == ["In a moment", "Köln"]

    async def test_words_are_heeded_in_the_order_of_their_rows(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as session:
            for content in ("one", "two", "three"):
                say(workspace, "send_message", to_agent="alice", content=content)
            mail = workspace.session_zone.steering("alice/s1", 0)
            for each in (mail[2], mail[0], mail[1], mail[2], mail[0]):
                session.takes(each)
            state = await session.run()
        assert [message.content for message in state.messages][:3] == ["one", "two", "three"]
        assert len(state.messages) == 4


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
                    say(later, word, to_agent="alice", content="And now?")
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
        self, workspace: Workspace, hints: dict[str, bool]
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
        self, workspace: Workspace, root: Path
    ) -> None:
        held, config = Held(), RuntimeConfig(limits=Limits(seconds=0.05))
        agent = chat(calling(call("work")), SAYS, tools={"work": held_tool(held)})
        async with workspace.sessions.begin("alice", agent, config, session_id="s1") as session:
            state = await session.run()
            assert state.error is not None
            assert state.error.code == "limit_reached"
            assert len(state.open_calls) == 1
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
    async def test_the_one_that_is_second_is_told(self, workspace: Workspace, root: Path) -> None:
        with Workspace.open(root) as other:
            async with (
                workspace.sessions.begin("alice", chat(SAYS), session_id="s1") as one,
                other.sessions.resume("alice", "s1", chat(SAYS)) as two,
            ):
                await one.step()
                with pytest.raises(SessionTaken):
                    await two.run()
                assert (await one.run()).status == "done"
        assert [row.outcome for row in workspace.journal.refused("session", "alice/s1")] == ["conflict"]

    async def test_a_plain_tool_is_run_by_one_of_them(self, workspace: Workspace, root: Path) -> None:
        """Both take up the same call at the same moment."""
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
            assert len(tool.given) <= 1
            assert any(isinstance(each, SessionTaken) for each in ended)
            state = workspace.sessions.state("alice", f"s{n}")
            assert len(results(state)) <= 1

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


class TestTheNextSession:
    async def test_what_is_said_between_two_sessions_is_heard_by_the_next(self, workspace: Workspace) -> None:
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            await session.run()
        say(workspace, "send_message", to_agent="alice", content="And now in French.")
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
                to_agent="alice",
                session_id=first.state.session_id,
                content="Hush.",
            )
            async with workspace.sessions.begin("alice", chat(SAYS)) as second:
                state = await second.run()
        assert "Hush." not in [message.content for message in state.messages]


class TestRaces:
    async def test_a_word_between_the_first_row_and_the_first_look_is_heard(
        self, workspace: Workspace
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
            end()
            loop.call_soon_threadsafe(speak)

        end = workspace.subscribe(once)
        async with workspace.sessions.begin("alice", chat(SAYS)) as session:
            assert said[0]["success"]
            assert (await session.run()).status == "cancelled"

    async def test_a_row_that_is_being_written_is_waited_for(self, workspace: Workspace) -> None:
        committing, may_end = threading.Event(), threading.Event()
        agent = chat(SAYS)
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:

            def hold() -> None:
                committing.set()
                may_end.wait(20)

            end = workspace.subscribe(hold)
            run = asyncio.create_task(session.run())
            await asyncio.to_thread(committing.wait)
            run.cancel()
            await asyncio.sleep(0)
            assert not run.done()
            may_end.set()
            end()
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
        tools = {"work": held_tool(held)}
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
