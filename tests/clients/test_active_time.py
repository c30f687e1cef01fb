"""The seconds of a client's session: of its turns, without waiting for people."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.attached import SESSION, told
from clients.test_waiting import CALL, add_rules, permission, requests, until
from memory_journal import MemoryJournal
from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.events import (
    BudgetHeld,
    CallFinished,
    CallStarted,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TurnEnded,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.fold import Fold
from watchroom.features.requests.rows import Answer, CallDecision, PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import StepDetail

CLAUDE = ClientInfo("claude")


class Clock:
    """The machine's clock, ahead by what `advance` was given."""

    def __init__(self) -> None:
        self._time_ns = time.time_ns
        self._ahead = 0

    def advance(self, seconds: float) -> None:
        self._ahead += int(seconds * 1e9)

    def __call__(self) -> int:
        return self._time_ns() + self._ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time_ns", clock)
    return clock


@pytest.fixture
def workspace(root: Path, clock: Clock) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice"], journal=MemoryJournal()) as opened:
        yield opened


def seconds_of(session: ClientSession) -> int:
    """The whole seconds: the test itself takes less than one."""
    return int(StepDetail.of(session.last).seconds)


def test_turns_count_and_waiting_does_not(workspace: Workspace, clock: Clock) -> None:
    session = ClientSession(workspace, "alice", "s1", CLAUDE)
    counted: list[int] = []

    def record(after: float, event: ClientEvent) -> None:
        clock.advance(after)
        session.record(event)
        counted.append(seconds_of(session))

    record(100, PromptSubmitted("Go"))
    record(10, CallStarted("c1", "Bash"))
    record(20, CallFinished("c1"))
    record(5, TurnEnded())
    record(1000, MessageCompleted("Reported late."))
    assert counted == [0, 10, 30, 35, 35]
    record(1000, PromptSubmitted("On"))
    record(3, ClientPaused("human:ann"))
    record(1000, ClientPaused("human:ann", is_paused=False))
    record(4, BudgetHeld())
    record(1000, BudgetHeld(is_held=False))
    record(2, CallStarted("c2", "Bash"))
    assert counted[5:] == [35, 38, 38, 42, 42, 44]
    asked = session.ask("c2", Request("approve", calls=(PendingCall("c2", "Bash", "{}"),)))
    clock.advance(1000)
    session.record_answer(asked, Answer(decisions=(CallDecision("c2", True),)), "human:ann")
    record(6, CallFinished("c2"))
    # An interrupted turn has no end: neither a prompt nor the end of the session says how long it was.
    record(1000, PromptSubmitted("Again"))
    record(1000, SessionEnded())
    assert counted[11:] == [50, 50, 50]


def test_the_last_turn_of_a_client_that_was_started_here_counts(workspace: Workspace, clock: Clock) -> None:
    session = ClientSession(workspace, "alice", "s1", CLAUDE._replace(attachment="run"))
    session.record(PromptSubmitted("Go"))
    clock.advance(7)
    session.record(SessionEnded("cancelled"))
    assert seconds_of(session) == 7


def test_a_subagent_works_within_the_turn_of_its_parent(workspace: Workspace, clock: Clock) -> None:
    session = ClientSession(workspace, "alice", "s1", CLAUDE, parent="alice/s0")
    session.record(PromptSubmitted("Go"))
    clock.advance(7)
    session.record(SessionEnded())
    assert seconds_of(session) == 0


def test_a_budget_of_seconds_holds_an_attached_client(workspace: Workspace, clock: Clock) -> None:
    add_rules(workspace, "\n[budgets.session]\nseconds = 10\n")

    async def run() -> None:
        client = Attachment(workspace, "alice", "claude")
        await client.handle(told("UserPromptSubmit", prompt="Go", prompt_id="p"))
        clock.advance(6)
        assert permission(await client.handle(told("PreToolUse", **CALL))) == ""
        clock.advance(6)
        await client.handle(told("PostToolUse", **CALL, tool_response="ok"))
        held = asyncio.ensure_future(client.handle(told("PreToolUse", **{**CALL, "tool_use_id": "t2"})))
        await until(lambda: requests(workspace) or held.done())
        session = client.sessions[SESSION]
        await until(lambda: session.status == "waiting_for_human_input")
        fold = Fold(workspace.journal.content)
        fold.apply(workspace.journal.rows())
        (agent,) = fold.model().agents
        assert agent.status(workspace.journal.now()) == "waiting"
        clock.advance(1000)
        answer = Answer(values=("once",))
        workspace.requests.answer(CallContext("human:ann"), requests(workspace)[0].seq, answer)
        assert permission(await held) == ""
        assert (session.status, seconds_of(session)) == ("running", 12)

    asyncio.run(run())
