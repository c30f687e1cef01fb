"""Steps of a session that are written with SQL: what a person did not approve does not run."""

from __future__ import annotations

from people.conftest import Team
from people.planted import plant
from runtime.weather import Calls, call, calling
from runtime.working import ASK, HELLO, SAYS, chat
from watchroom import Workspace
from watchroom.features.requests.rows import PendingCall
from watchroom.features.sessions.runtime.step_rows import encode_step
from watchroom.kernel.call_context import CallContext


async def waiting_session(team: Team, ran: Calls) -> None:
    """Leave a session of alice's that waiting for a person to approve its call of ``work``."""
    agent = chat(calling(call("work", "c1")), SAYS, tools={"work": ran}, policies=ASK)
    async with team.workspace.sessions.begin("alice", agent, session_id="s1", messages=HELLO) as session:
        while session.state.status != "waiting_for_human_input":
            await session.step()
        asked = session.state.asked
        assert asked is not None
        team.workspace.requests.ask(CallContext("alice"), f"alice/s1/{session.state.step_count}", asked)


async def test_a_planted_step_approves_no_call(team: Team) -> None:
    ran = Calls("ran")
    await waiting_session(team, ran)
    state = team.workspace.sessions.state("alice", "s1")
    (wanted,) = state.pending_tools_calling
    after = state.with_changes(
        asked=None,
        status="running",
        pending_tools_calling=(),
        approved_tools_calling=(wanted,),
        approvals=(PendingCall(wanted.id, wanted.function.name, wanted.function.arguments),),
    )
    head = team.workspace.journal.head("session", "alice/s1")
    assert head is not None
    plant(
        *(team.root, "alice", "answer", "session", "alice/s1"),
        content=encode_step(state, after),
        detail={**head.detail, "status": "running"},
        version=(head.version or 0) + 1,
        base=head.version,
    )
    with Workspace.open(team.root, create=False) as later:
        agent = chat(SAYS, tools={"work": ran}, policies=ASK)
        async with later.sessions.resume("alice", "s1", agent) as session:
            await session.step()
    assert ran.given == []
