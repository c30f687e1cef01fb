"""The session of a client of its own is a session like any other."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from watchroom import Workspace
from watchroom.agents.clients.events import (
    BudgetHeld,
    CallFinished,
    CallStarted,
    ClientInfo,
    ClientPaused,
    MessageCompleted,
    PlanUpdated,
    PromptSubmitted,
    SessionEnded,
    TurnEnded,
    TurnFailed,
    UsageAdded,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal, usage_of
from watchroom.features.overview.fold import Fold
from watchroom.features.requests.rows import Answer, CallDecision, PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import StepDetail
from watchroom.model import ENDED

CLAUDE = ClientInfo("claude", "2.1", "/project", "a-model")


def test_what_a_client_tells_is_the_state_of_its_session(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    for event in (
        PromptSubmitted("Write the plan", "human:ann"),
        MessageCompleted("I write it.", thought="Where?", used=UsageTotal(100, 20, 400)),
        CallStarted("c1", "Write", '{"file_path": "plan.md"}'),
        CallFinished("c1", "written"),
        PlanUpdated((("Write", "completed"), ("Test", "pending"))),
        TurnEnded(),
    ):
        session.record(event)
    state = workspace.sessions.state("alice", "s-1")
    assert [message.role for message in state.messages] == ["user", "assistant", "assistant", "tool"]
    assert [event.type for event in state.events] == ["thought", "llm_result", "tool_result", "plan_changed"]
    assert state.status == "idle"
    assert (state.spent.input_tokens, state.spent.cache_read_tokens, state.spent.tool_calls) == (100, 400, 1)
    assert state.metadata["model"] == "a-model"


def test_hooks_at_the_same_time_do_not_conflict(workspace: Workspace) -> None:
    """A conflict is a row that counts as refused."""
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    events = [MessageCompleted(f"Message {number}", key=f"m{number}") for number in range(60)]
    with ThreadPoolExecutor(6) as pool:
        assert None not in pool.map(session.record, events)
    assert len(workspace.sessions.state("alice", "s-1").messages) == 60
    rows = workspace.journal.rows(0, limit=1000)
    assert [row for row in rows if row.outcome != "ok"] == []


def test_the_runtime_reads_every_row_of_a_client(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    events = (
        PromptSubmitted("Go", "human:ann", "p1"),
        MessageCompleted("Well.", "Hm.", "a-model", UsageTotal(1, 2, 3, 4, 0.5, 0, "client"), "m1"),
        UsageAdded(UsageTotal(5, 6, cost=0.25, priced_by="client"), "a-model", "u1"),
        CallStarted("c1", "Bash", '{"command": "ls"}'),
        CallFinished("c1", "not now", True, "rejected", "Bash", '{"command": "ls"}', "/project"),
        PlanUpdated((("Test", "in_progress"),)),
        ClientPaused("human:ann"),
        ClientPaused("human:ann", is_paused=False),
        BudgetHeld(),
        BudgetHeld(is_held=False),
        TurnFailed("limit"),
        TurnEnded("max_tokens"),
        SessionEnded("cancelled", "by ann"),
        SessionEnded("done", "left"),
        SessionEnded("error", "died"),
    )
    for event in events:
        session.record(event)
    path = session.ask("c2", Request("approve", calls=(PendingCall("c2", "Write", "{}"),)))
    session.record_answer(path, Answer(decisions=(CallDecision("c2", True, "", '{"a": 1}'),)), "human:ann")
    session.record_withdrawal(path)
    session.record_unsupervised()
    state, step = workspace.sessions.state("alice", "s-1"), StepDetail.of(session.last)
    assert [event.type for event in state.events] == [
        *("thought", "llm_result", "usage_reported", "tool_result", "plan_changed", "paused", "resumed"),
        *("error", "cancelled", "done", "error", "human_approve_required", "human_answered"),
    ]
    assert (state.status, state.step_count) == (step.status, step.steps)
    assert state.status not in ENDED
    spent = state.spent
    assert (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens) == (6, 8, 3)
    assert (spent.cache_write_tokens, spent.cost, spent.tool_calls) == (4, 0.75, 1)
    assert step.cost == spent.cost


def test_told_twice_by_two_processes_is_one_row(workspace: Workspace) -> None:
    one = ClientSession(workspace, "alice", "s-1", CLAUDE)
    other = ClientSession(workspace, "alice", "s-1", CLAUDE, is_owner=False)
    said = MessageCompleted("Hello", used=UsageTotal(10, 2, cost=0.01, priced_by="client"), key="msg_1")
    assert one.record(said) == other.record(said)
    other.record(UsageAdded(UsageTotal(5), key="turn"))
    one.record(UsageAdded(UsageTotal(5), key="turn"))
    detail = StepDetail.of(one.last)
    assert (detail.input_tokens, detail.output_tokens, detail.cost) == (15, 2, 0.01)


def test_long_ids_of_a_client_name_its_calls(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    long = Random(1).randbytes(3000).hex()
    rows = [session.record(CallStarted(each, "Bash", "{}")) for each in (long, f"{long}2", long)]
    assert rows[0] == rows[2]
    assert rows[0] != rows[1]


def test_what_a_step_used_stands_in_its_row(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    used = UsageTotal(1, 2, 3, 4, 0.5, 0, "table")
    row = session.record(MessageCompleted("Hello", model="a-model", used=used))
    assert row is not None
    record = usage_of(row)
    assert record is not None
    assert record == ("a-model", used)


def test_it_waits_for_a_person_and_goes_on(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    call = PendingCall("c1", "Bash", '{"command": "ls"}')
    path = session.ask("c1", Request("approve", calls=(call,)))
    assert session.ask("c1", Request("approve", calls=(call,))) == path
    assert StepDetail.of(session.last).status == "waiting_for_human_input"
    (asked,) = [row for row in workspace.journal.history("request", path) if row.version == 1]
    answer = Answer(decisions=(CallDecision("c1", False, "not now"),))
    ended = workspace.requests.answer(CallContext("human:ann"), asked.seq, answer)
    session.record_answer(path, answer, ended.actor)
    assert session.status == "running"


def test_what_is_told_late_does_not_change_what_it_waits_for(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(CallStarted("c1", "Bash", '{"command": "ls"}'))
    session.record(CallStarted("c2", "Bash", '{"command": "rm"}'))
    call = PendingCall("c2", "Bash", '{"command": "rm"}')
    session.ask("c2", Request("approve", calls=(call,)))
    session.record(CallFinished("c1", "a.md"))
    assert StepDetail.of(session.last).status == "waiting_for_human_input"
    session.record(TurnEnded())
    session.record(MessageCompleted("That was all."))
    assert session.status == "idle"


@pytest.mark.parametrize("outcome", ["done", "cancelled", "error"])
def test_it_ends_and_may_go_on_after_that(workspace: Workspace, outcome: str) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(SessionEnded(outcome, "killed"))  # type: ignore[arg-type]  # each of the three
    assert session.status == outcome
    session.record(PromptSubmitted("Go on"))
    assert StepDetail.of(session.last).status == "running"
    session.record(ClientPaused("human:ann"))
    assert session.status == "paused"


@pytest.mark.parametrize("outcome", ["done", "cancelled", "error"])
def test_what_is_told_after_the_end_leaves_it_so(workspace: Workspace, outcome: str) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(SessionEnded(outcome, "killed"))  # type: ignore[arg-type]  # each of the three
    ended = StepDetail.of(session.last)
    session.record(UsageAdded(UsageTotal(5), key="turn"))
    after = StepDetail.of(session.last)
    assert (after.status, after.error, after.input_tokens) == (outcome, ended.error, 5)
    assert workspace.sessions.state("alice", "s-1").status == outcome
    session.record(MessageCompleted("Bye"))
    session.record(CallFinished("c1", "late"))
    assert session.status == outcome


def test_a_subagent_is_a_session_of_its_own_below_its_parents(workspace: Workspace) -> None:
    parent = ClientSession(workspace, "alice", "s-1", CLAUDE)
    parent.record(PromptSubmitted("Do it"))
    child = ClientSession(workspace, "alice", "s-1.sub", CLAUDE, parent=parent.path)
    child.record(MessageCompleted("Looking", used=UsageTotal(7)))
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows())
    view = fold.model().agent("alice")
    assert view is not None
    assert view.session is not None
    assert view.session.path == parent.path


def test_a_failed_call_reads_as_one(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(CallStarted("c1", "Bash", '{"command": "ls"}'))
    session.record(CallFinished("c1", "no such file \udcff", is_error=True))
    (message,) = [each for each in workspace.sessions.state("alice", "s-1").messages if each.role == "tool"]
    assert json.loads(message.content)["success"] is False


def test_a_client_of_which_no_hook_tells_is_unsupervised(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(PromptSubmitted("Do it"))
    session.record_unsupervised()

    def status() -> str:
        fold = Fold(workspace.journal.content, workspace.journal.row)
        fold.apply(workspace.journal.rows())
        view = fold.model().agent("alice")
        assert view is not None
        return view.status(workspace.journal.now())

    assert status() == "unsupervised"
    session.is_supervised = True
    session.record(MessageCompleted("Hello"))
    assert status() == "running"
