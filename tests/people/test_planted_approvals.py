"""Steps and withdrawals that are written with SQL: an approval holds for the call that was shown, and once."""

from __future__ import annotations

import asyncio

import pytest
from people.conftest import EVE, Team
from people.planted import plant
from people.test_planted_steps import waiting_session
from runtime.scripted import at_work, until
from runtime.weather import Calls, call, calling
from runtime.working import ASK, HELLO, SAYS, asked_in, chat, results
from watchroom import Workspace
from watchroom.features.requests.rows import Answer, Option, PendingCall, Request, decide_all
from watchroom.features.sessions.runtime import AgentState
from watchroom.features.sessions.runtime.messages import ToolCall
from watchroom.features.sessions.runtime.step_rows import encode_step
from watchroom.kernel.call_context import CallContext
from watchroom.model import WITHDRAW, Json, RequestKind

DEADLINE = 20.0
"""Seconds after which a session waits for ever."""


def plant_step(team: Team, before: AgentState, after: AgentState) -> None:
    """Put a step of alice's session into the journal that leads from ``before`` to ``after``."""
    head = team.workspace.journal.head("session", "alice/s1")
    assert head is not None
    plant(
        *(team.root, "alice", "answer", "session", "alice/s1"),
        content=encode_step(before, after),
        detail={**head.detail, "status": after.status},
        version=(head.version or 0) + 1,
        base=head.version,
    )


def state_of(team: Team) -> AgentState:
    return team.workspace.sessions.state("alice", "s1")


def asked_arguments(state: AgentState) -> list[str]:
    assert state.asked is not None
    return [each.arguments for each in state.asked.calls]


def approved(state: AgentState, *calls: ToolCall) -> AgentState:
    """The state that a person's approval of ``calls`` leads to."""
    return state.with_changes(
        asked=None,
        status="running",
        pending_tools_calling=(),
        approved_tools_calling=calls,
        approvals=tuple(PendingCall(each.id, each.function.name, each.function.arguments) for each in calls),
    )


def approve(team: Team) -> None:
    """Approve, as eve, what alice's session asks now."""
    state = state_of(team)
    assert state.asked is not None
    row = team.workspace.journal.version("request", f"alice/s1/{state.step_count}", 1)
    assert row is not None
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), row.seq, decide_all(state.asked, True))
    team.sign_as(None)


async def next_state(workspace: Workspace, ran: Calls, *answers: list[dict[str, Json]]) -> AgentState:
    """The state of alice's session once it waits for people or has ended, in another process."""
    agent = chat(*answers, tools={"work": ran}, policies=ASK)
    async with workspace.sessions.resume("alice", "s1", agent) as session:
        while session.state.status == "running":
            await session.step()
        return session.state


async def test_an_approval_is_found_again_after_a_crash(team: Team) -> None:
    """The answer was committed as a step, and then the process died."""
    ran = Calls("ran")
    await waiting_session(team, ran)
    approve(team)
    before = state_of(team)
    plant_step(team, before, approved(before, *before.pending_tools_calling))
    with Workspace.open(team.root, create=False) as later:
        state = await next_state(later, ran, SAYS)
    assert ran.given == [{}]
    assert state.status == "done"


async def test_other_arguments_than_those_that_were_approved_are_asked_about(team: Team) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    approve(team)
    before = state_of(team)
    plant_step(team, before, approved(before, call("work", "c1", place="production")))
    with Workspace.open(team.root, create=False) as later:
        state = await next_state(later, ran)
    assert ran.given == []
    assert state.status == "waiting_for_human_input"
    assert asked_arguments(state) == ["{}"]


async def test_an_approval_holds_for_one_run(team: Team) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    waiting = state_of(team)
    approve(team)
    agent = chat(SAYS, tools={"work": ran}, policies=ASK)
    async with team.workspace.sessions.resume("alice", "s1", agent) as session:
        await asyncio.wait_for(session.run(), DEADLINE)
    assert ran.given == [{}]
    # The result of the call is taken out of the state, as if it had never run.
    plant_step(team, state_of(team), approved(waiting, *waiting.pending_tools_calling))
    assert state_of(team).approved_tools_calling
    with Workspace.open(team.root, create=False) as later:
        state = await next_state(later, ran)
    assert ran.given == [{}]
    assert state.status == "waiting_for_human_input"


async def test_a_call_that_people_were_not_shown_does_not_run(team: Team) -> None:
    """The session asks about one call and would run another of the same id."""
    ran = Calls("ran")
    await waiting_session(team, ran)
    before = state_of(team)
    hidden = call("work", "c1", place="production")
    plant_step(team, before, before.with_changes(pending_tools_calling=(hidden,)))
    approve(team)
    with Workspace.open(team.root, create=False) as later:
        agent = chat(SAYS, tools={"work": ran}, policies=ASK)
        async with later.sessions.resume("alice", "s1", agent) as session, at_work(session):
            await until(lambda: session.state.step_count > before.step_count)
            assert session.state.status == "waiting_for_human_input"
    assert ran.given == []


async def test_a_planted_step_allows_no_step_over_a_budget(team: Team) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    before = state_of(team)
    after = before.with_changes(
        status="running", asked=None, pending_tools_calling=(), granted_step=before.step_count
    )
    plant_step(team, before, after)
    with Workspace.open(team.root, create=False) as later:
        agent = chat(SAYS, tools={"work": ran}, policies=ASK)
        async with later.sessions.resume("alice", "s1", agent) as session:
            assert session.state.granted_step == -1


async def test_a_step_that_was_allowed_over_a_budget_is_found_again(team: Team) -> None:
    """A person allowed one call, and then the process died."""
    ran = Calls("ran")
    team.sign_as(EVE)
    team.workspace.budgets.set_budget(CallContext("human:eve"), "agent", "alice", "steps", 1)
    team.sign_as(None)
    agent = chat(calling(call("work", "c1")), SAYS, tools={"work": ran})
    begun = team.workspace.sessions.begin("alice", agent, session_id="s1", messages=HELLO)
    async with begun as session, at_work(session):
        await until(lambda: session.state.asked is not None)
    before = state_of(team)
    assert before.asked is not None
    about = before.asked.metadata["budget"]
    row = team.workspace.journal.version("request", str(about["request"]), 1)  # type: ignore[index]
    assert row is not None
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), row.seq, Answer(values=("once",)))
    team.sign_as(None)
    plant_step(
        team, before, before.with_changes(status="running", asked=None, granted_step=before.step_count)
    )
    with Workspace.open(team.root, create=False) as later:
        async with later.sessions.resume("alice", "s1", agent) as session:
            await session.step()
            assert ran.given == [{}]
            await session.step()
            assert session.state.status == "waiting_for_human_input"


def withdraw(team: Team, path: str) -> None:
    """Plant the withdrawal of the request at ``path``."""
    asked = team.workspace.journal.version("request", path, 1)
    assert asked is not None
    plant(
        *(team.root, "system", WITHDRAW, "request", path),
        content="",
        detail={"request": asked.seq, "outcome": "withdrawn"},
        version=2,
        base=1,
    )


async def test_a_withdrawn_request_approves_nothing_and_the_session_goes_on(team: Team) -> None:
    ran = Calls("ran")
    model_says = chat(calling(call("work", "c1")), SAYS, tools={"work": ran}, policies=ASK)
    begun = team.workspace.sessions.begin("alice", model_says, session_id="s1", messages=HELLO)
    async with begun as session, at_work(session) as run:
        await asked_in(team.workspace, session)
        withdraw(team, f"alice/s1/{session.state.step_count}")
        state = await asyncio.wait_for(run, DEADLINE)
    assert ran.given == []
    assert state.status == "done"
    assert results(state)["c1"]["error"] == "no_answer"
    assert "withdrawn" in results(state)["c1"]["message"]


async def test_a_session_that_resumes_after_a_withdrawal_goes_on(team: Team) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    withdraw(team, f"alice/s1/{state_of(team).step_count}")
    with Workspace.open(team.root, create=False) as later:
        agent = chat(SAYS, tools={"work": ran}, policies=ASK)
        async with later.sessions.resume("alice", "s1", agent) as session:
            state = await asyncio.wait_for(session.run(), DEADLINE)
    assert (ran.given, state.status) == ([], "done")


@pytest.mark.parametrize("kind", ["prompt", "select"])
async def test_a_withdrawn_question_is_reported_to_the_model(team: Team, kind: RequestKind) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    before = state_of(team)
    asked = Request(kind, "Which?", options=(Option("a", "a"),))
    after = before.with_changes(
        asked=asked,
        pending_tools_calling=(),
        messages=before.messages[:1],
        step_count=before.step_count + 1,
    )
    plant_step(team, before, after)
    team.workspace.requests.ask(CallContext("alice"), f"alice/s1/{after.step_count}", asked)
    withdraw(team, f"alice/s1/{after.step_count}")
    with Workspace.open(team.root, create=False) as later:
        agent = chat(SAYS, tools={"work": ran}, policies=ASK)
        async with later.sessions.resume("alice", "s1", agent) as session:
            state = await asyncio.wait_for(session.run(), DEADLINE)
    assert [message.role for message in state.messages] == ["user", "system", "assistant"]
    assert "withdrawn" in state.messages[1].content
