"""Requests of running sessions: approved, rejected, answered, chosen, expired, and answered by two at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runtime.scripted import Scripted, at_work, say
from runtime.weather import Calls, call, calling
from runtime.working import ASK, HELLO, SAYS, asked_in, chat, deliver, is_whole, results
from watchroom import Workspace
from watchroom.errors import NotText, RequestNotFound
from watchroom.features.requests.rows import Answer, Option, Request
from watchroom.features.sessions.runtime import (
    ASK_PERSON,
    AgentState,
    Finish,
    Policies,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    SystemMessage,
    UserMessage,
)
from watchroom.kernel.call_context import CallContext
from zones.test_open_requests import fill_open_requests


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
            CallContext("alice"), "alice/s1/1", Request("select", "?", options=OPTIONS, multi=multi)
        )
        refused = say(workspace, "answer_request", request=row.seq, **misfit)
        assert refused["error"] == "invalid_answer"

    @pytest.mark.parametrize(
        "misfit", [{}, {"text": " \n"}, {"text": "x" * 100_001}, {"text": "x", "values": ["x"]}]
    )
    async def test_a_text_must_say_something(self, workspace: Workspace, misfit: dict[str, Any]) -> None:
        row = workspace.requests.ask(CallContext("alice"), "alice/s1/1", Request("prompt", "?"))
        assert say(workspace, "answer_request", request=row.seq, **misfit)["error"] == "invalid_answer"

    async def test_half_characters_are_refused(self, workspace: Workspace) -> None:
        row = workspace.requests.ask(CallContext("alice"), "alice/s1/1", Request("prompt", "?"))
        with pytest.raises(NotText):
            workspace.requests.answer(CallContext("human:dana"), row.seq, Answer(text="half \ud83d"))
        assert workspace.requests.ended("alice/s1/1") is None

    async def test_a_request_is_asked_once(self, workspace: Workspace) -> None:
        request = Request("prompt", "?")
        first = workspace.requests.ask(CallContext("alice"), "alice/s1/1", request)
        barrier = threading.Barrier(8)
        rows = []

        def ask(path: str) -> None:
            barrier.wait()
            rows.append(workspace.requests.ask(CallContext("alice"), path, request))

        threads = [threading.Thread(target=ask, args=("alice/s1/2",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert workspace.requests.ask(CallContext("alice"), "alice/s1/1", request) == first
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
        row = workspace.requests.ask(CallContext("alice"), "alice/s1/1", Request("prompt", "?", expires=1))
        told = say(workspace, "answer_request", request=row.seq, text="Köln")
        assert told["error"] == "request_expired"
        (kept,) = [row for row in workspace.journal.rows() if row.tool == "answer_request"]
        assert (kept.outcome, kept.error) == ("failed", "request_expired")
        assert "Köln" in (workspace.journal.content(kept.seq) or "")
        assert workspace.requests.expire("alice/s1/1").answer == Answer(expired=True)
        assert workspace.requests.expire("alice/s1/1").answer == Answer(expired=True)

    async def test_an_answer_that_was_first_counts(self, workspace: Workspace) -> None:
        row = workspace.requests.ask(CallContext("alice"), "alice/s1/1", Request("prompt", "?"))
        assert say(workspace, "answer_request", request=row.seq, text="Köln")["success"]
        ended = workspace.requests.expire("alice/s1/1")
        assert (ended.answer, ended.row.actor) == (Answer(text="Köln"), "human:dana")

    async def test_a_request_that_expires_and_is_answered_at_once_ends_once(
        self, workspace: Workspace
    ) -> None:
        for n in range(40):
            path = f"alice/s1/{n}"
            row = workspace.requests.ask(CallContext("alice"), path, Request("prompt", "?"))
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


class TestTooManyRequests:
    """The agent has as many open requests as it may have."""

    async def test_a_call_that_nobody_can_be_asked_about_is_not_made(self, workspace: Workspace) -> None:
        await asyncio.to_thread(fill_open_requests, workspace)
        tool = Calls("ran")
        agent = chat(calling(call("tool")), SAYS, tools={"tool": tool}, policies=ASK)
        async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
            state = await session.run()
        assert (state.status, tool.given, is_whole(state)) == ("done", [], True)
        assert "50 open requests" in results(state)["call_1"]["message"]
        codes = [each.error.code for each in state.events if each.type == "error"]
        assert codes == ["too_many_requests"]

    async def test_a_question_is_not_asked_and_the_agent_goes_on(self, workspace: Workspace) -> None:
        await asyncio.to_thread(fill_open_requests, workspace)
        agent = Scripted(RequestHumanPrompt(prompt="Which?"), Finish())
        async with workspace.sessions.begin("alice", agent) as session:
            state = await session.run()
        assert state.status == "done"
        assert "50 open requests" in str(state.messages[-1].content)

    async def test_a_session_that_could_not_ask_is_cancelled(self, workspace: Workspace) -> None:
        agent = Scripted(RequestHumanPrompt(prompt="Which?"))
        async with workspace.sessions.begin("alice", agent) as session:
            await session.step()
            await asyncio.to_thread(fill_open_requests, workspace)
            await asyncio.to_thread(say, workspace, "cancel_agent", agent_id="alice")
            deliver(workspace, session)
            assert (await session.run()).status == "cancelled"


class TestTwoAtOnce:
    async def test_of_two_people_one_counts_and_the_other_is_told(self, workspace: Workspace) -> None:
        for n in range(20):
            row = workspace.requests.ask(CallContext("alice"), f"alice/s1/{n}", Request("prompt", "?"))
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
