"""Budgets hold the calls of clients, too."""

from __future__ import annotations

import asyncio

from runtime.scripted import say, until
from runtime.working import HELLO, chat
from serving.clients import called, refused, within
from watchroom import Toolbox, Workspace
from watchroom.journal import RowFilter


def asked(workspace: Workspace) -> list[int]:
    rows = workspace.journal.rows_before(10**9, only=RowFilter(zone="request"))
    return [row.seq for row in reversed(rows) if row.version == 1]


async def test_the_next_call_waits_until_a_person_decides(workspace: Workspace, alice: Toolbox) -> None:
    used = {"input_tokens": 10, "output_tokens": 1, "cost": 0.5, "priced_by": "client"}
    agent = chat([{"content": "Done."}, {"usage": used}])
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        await session.run()
    say(workspace, "set_budget", scope="agent", measure="cost", most=0.4)
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
