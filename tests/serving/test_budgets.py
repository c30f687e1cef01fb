"""Budgets hold the calls of clients, too."""

from __future__ import annotations

import asyncio

import pytest
from clock import JumpingMonotonicClock
from runtime.scripted import say, until
from runtime.working import HELLO, chat
from serving.clients import called, refused, within
from watchroom import Toolbox, Workspace
from watchroom.kernel.journal import RowFilter
from watchroom.model import Row


def requests_of(workspace: Workspace) -> list[Row]:
    rows = workspace.journal.rows_before(10**9, only=RowFilter(zone="request"))
    return [row for row in reversed(rows) if row.version is not None]


def asked(workspace: Workspace) -> list[int]:
    return [row.seq for row in requests_of(workspace) if row.version == 1]


async def use_up_budget(workspace: Workspace) -> None:
    used = {"input_tokens": 10, "output_tokens": 1, "cost": 0.5, "priced_by": "client"}
    agent = chat([{"content": "Done."}, {"usage": used}])
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        await session.run()
    say(workspace, "set_budget", scope="agent", measure="cost", most=0.4)


async def test_the_next_call_waits_until_a_person_decides(workspace: Workspace, alice: Toolbox) -> None:
    await use_up_budget(workspace)
    async with within(workspace, alice) as client:
        call = asyncio.create_task(called(client, "collab_list"))
        await until(lambda: len(asked(workspace)) == 1)
        # Another call that is held by it asks nothing again.
        assert workspace.budgets.hold_call("alice") is not None
        assert len(asked(workspace)) == 1
        assert not call.done()
        say(workspace, "answer_request", request=asked(workspace)[0], values=["once"])
        assert (await call)["success"]
        held = asyncio.create_task(refused(client, "collab_list"))
        await until(lambda: len(asked(workspace)) == 2)
        say(workspace, "answer_request", request=asked(workspace)[1], values=["stop"])
        assert (await held)["error"] == "budget_reached"
        # Who was stopped is not asked about again, until the budget is another one.
        assert (await refused(client, "collab_list"))["error"] == "budget_reached"
        assert len(asked(workspace)) == 2
        say(workspace, "set_budget", scope="agent", measure="cost", most=1)
        assert (await called(client, "collab_list"))["success"]


async def test_a_call_that_a_budget_holds_is_refused_when_nobody_answers(
    workspace: Workspace, alice: Toolbox
) -> None:
    await use_up_budget(workspace)
    async with within(workspace, alice, seconds=0.2) as client:
        assert (await refused(client, "collab_list"))["error"] == "budget_reached"
    (request,) = asked(workspace)
    # The request stays open for the next call.
    assert [row.seq for row in requests_of(workspace)] == [request]


async def test_the_waits_for_a_budget_and_an_approval_share_one_deadline(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingMonotonicClock(monkeypatch)
    await use_up_budget(workspace)
    write = {"filepath": "plan.md", "content": "x\n", "message": "m"}
    async with within(workspace, alice, approval_tools=["collab_write"], seconds=3000) as client:
        call = asyncio.create_task(refused(client, "collab_write", **write))
        await until(lambda: len(asked(workspace)) == 1)
        clock.ahead = 2000
        say(workspace, "answer_request", request=asked(workspace)[0], values=["once"])
        await until(lambda: len(asked(workspace)) == 2)
        approval = requests_of(workspace)[-1]
        expires = workspace.requests.read(approval).expires
        assert expires is not None
        assert 900e9 < expires - approval.time <= 1000e9
        workspace.requests.expire(approval.path)
        assert (await call)["error"] == "call_unanswered"
    assert workspace.journal.head("collab", "plan.md") is None
