"""An agent can have 50 open requests. The next is refused, and what it asked about is not done."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from calls import ok
from clock import HOUR, JumpingClock
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
from watchroom.errors import TooManyRequests
from watchroom.features.requests import open_requests
from watchroom.features.requests.open_requests import OpenRequests
from watchroom.features.requests.rows import Answer, Request
from watchroom.features.requests.service import MAX_OPEN_REQUESTS
from watchroom.kernel.call_context import CallContext
from watchroom.model import Row, Write

NUMBERS = count()


def ask(
    workspace: Workspace, agent: str = "alice", seconds: float | None = None, session: str = "mcp"
) -> Row:
    expires = None if seconds is None else workspace.journal.now() + int(seconds * 1e9)
    request = Request("prompt", "Which?", expires=expires)
    return workspace.requests.ask(CallContext(agent), f"{agent}/{session}/{next(NUMBERS)}", request)


def open_paths(workspace: Workspace, agent: str = "alice") -> set[str]:
    return {row.path for row in workspace.journal.heads("request", f"{agent}/") if row.version == 1}


def fill_open_requests(workspace: Workspace, left: int = 0) -> list[Row]:
    """Have alice ask until she may ask only ``left`` more times."""
    return [ask(workspace) for _ in range(MAX_OPEN_REQUESTS - left)]


def test_the_next_request_is_refused_until_one_is_answered(workspace: Workspace) -> None:
    asked = fill_open_requests(workspace)
    with pytest.raises(TooManyRequests) as refused:
        ask(workspace)
    error = refused.value
    assert (error.code, error.outcome) == ("too_many_requests", "denied")
    assert error.message() == (
        "'alice' has 50 open requests to people, which is the limit. Nobody was asked, and nothing was done."
    )
    assert "watchroom answer" in error.suggestion()
    assert "50" in error.message("zh")
    assert "watchroom answer" in error.suggestion("zh")
    assert len(open_paths(workspace)) == MAX_OPEN_REQUESTS
    ask(workspace, "bob")
    ok(workspace.tools_for_human("dana"), "answer_request", request=asked[7].seq, text="This one")
    workspace.requests.withdraw(asked[8].path)
    ask(workspace)
    ask(workspace)
    with pytest.raises(TooManyRequests):
        ask(workspace)
    ask(workspace, "bob")


def test_the_same_request_is_asked_again(workspace: Workspace) -> None:
    """A restarted agent does so."""
    first, *_ = fill_open_requests(workspace)
    assert workspace.requests.ask(CallContext("alice"), first.path, workspace.requests.read(first)) == first


@pytest.mark.parametrize("left", [0, 3])
def test_agents_that_ask_at_once_do_not_exceed_it(workspace: Workspace, root: Path, left: int) -> None:
    fill_open_requests(workspace, left)

    def asks(at: Workspace) -> bool:
        try:
            ask(at)
        except TooManyRequests:
            return False
        return True

    with Workspace.open(root, scan=False) as other, ThreadPoolExecutor(12) as threads:
        made = list(threads.map(asks, [workspace, other] * 12))
    assert made.count(True) == left
    assert len(open_paths(workspace)) == MAX_OPEN_REQUESTS


def test_other_processes_free_and_take_places(workspace: Workspace, root: Path) -> None:
    first, second, *_ = fill_open_requests(workspace)
    with Workspace.open(root, scan=False) as other:
        with pytest.raises(TooManyRequests):
            ask(other)
        other.requests.answer(CallContext("human:dana"), first.seq, Answer(text="This one"))
        ask(workspace)
        with pytest.raises(TooManyRequests):
            ask(other)
        workspace.requests.answer(CallContext("human:dana"), second.seq, Answer(text="This one"))
        ask(other)
        with pytest.raises(TooManyRequests):
            ask(workspace)


@pytest.mark.sqlite("A server has its own clock.")
def test_a_request_whose_deadline_has_passed_takes_no_place(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that asked may be gone, so that nobody ends it."""
    clock = JumpingClock(monkeypatch)
    for _ in range(MAX_OPEN_REQUESTS):
        ask(workspace, seconds=600)
    with pytest.raises(TooManyRequests):
        ask(workspace)
    clock.ahead = HOUR
    ask(workspace)


def test_a_request_of_a_cancelled_session_takes_no_place(workspace: Workspace) -> None:
    """Nobody can answer it any more."""
    begun = Write("alice", "begin_session", "session", "alice/s1", "{}", detail={"status": "idle"})
    workspace.journal.append([begun])
    for _ in range(MAX_OPEN_REQUESTS):
        ask(workspace, session="s1")
    with pytest.raises(TooManyRequests):
        ask(workspace)
    ok(workspace.tools_for_human("dana"), "cancel_agent", agent_id="alice")
    ask(workspace)


def test_a_budget_is_asked_about_nevertheless(workspace: Workspace) -> None:
    """Watchroom asks, once for each budget."""
    fill_open_requests(workspace)
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(PromptSubmitted("Go"))
    ok(workspace.tools_for_human("dana"), "set_budget", scope="agent", measure="steps", most=1)
    assert workspace.budgets.hold_call("alice") is not None
    assert len(open_paths(workspace)) == MAX_OPEN_REQUESTS + 1


def count_open(found: OpenRequests, agent: str = "alice") -> int:
    return found.count(agent, MAX_OPEN_REQUESTS, lambda row: True)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_remembered_is_what_is_open(workspace: Workspace, seed: int) -> None:
    found, chance = OpenRequests(workspace.journal), random.Random(seed)
    for _ in range(60):
        agent = chance.choice(["alice", "bob"])
        known = sorted(open_paths(workspace, agent))
        if known and chance.random() < 0.5:
            workspace.requests.withdraw(chance.choice(known))
        else:
            ask(workspace, agent)
        if chance.random() < 0.5:
            assert count_open(found, agent) == len(open_paths(workspace, agent))


def test_what_was_opened_long_ago_is_known_to_the_process_that_knew_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads few rows, so another process only finds what was opened lately."""
    monkeypatch.setattr(open_requests, "MAX_NEW_ROWS", 10)
    found = OpenRequests(workspace.journal)
    old = ask(workspace)
    assert count_open(found) == 1
    for _ in range(12):
        ask(workspace, "bob")
    ask(workspace)
    assert count_open(found) == 2
    assert count_open(OpenRequests(workspace.journal)) == 1
    workspace.requests.withdraw(old.path)
    assert count_open(found) == 1


def test_a_request_that_does_not_count_is_examined_once(workspace: Workspace) -> None:
    """Otherwise planted requests would make each later question slower."""
    found, examined = OpenRequests(workspace.journal), list[str]()

    def counts(row: Row) -> bool:
        examined.append(row.path)
        return False

    planted = [ask(workspace).path for _ in range(5)]
    assert found.count("alice", 5, counts) == 0
    assert found.count("alice", 5, counts) == 0
    assert sorted(examined) == sorted(planted)
