"""What happened in few lines, and the agents that need a person first."""

from __future__ import annotations

from calls import ok
from projections.folding import acknowledge, deliver, denied, folded, write
from projections.test_requests_and_sessions import asked
from tui.sessions import asks, running, says
from watchroom import Toolbox, Workspace
from watchroom.features.overview.agents import order_agents


def test_successive_readings_of_an_agent_are_one_line_and_acts_are_one_each(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one", 0)
    for toolbox in (alice, bob):
        ok(toolbox, "collab_read", filepath="plan.md")
        ok(toolbox, "check_my_handoffs")
    deliver(alice)
    ok(bob, "read_handoff", from_agent="alice", filename="raw.md")
    acknowledge(bob)
    workspace.flush()
    model = folded(workspace.journal)
    log = [
        (each.row.tool, each.readings) for each in model.activity_log if each.row.actor in ("alice", "bob")
    ]
    assert log == [
        ("acknowledge_handoff", 0),
        ("read_handoff", 1),
        ("handoff_file", 0),
        ("check_my_handoffs", 2),
        ("check_my_handoffs", 2),
        ("collab_write", 0),
    ]
    assert sum(each.readings or 1 for each in model.activity_log) == len(model.recent)
    acts = {view.agent.id: view.last_act and view.last_act.tool for view in model.agents}
    assert acts == {"alice": "handoff_file", "bob": "acknowledge_handoff", "charlie": None}


async def test_agents_that_wait_come_before_those_that_go_on(workspace: Workspace, bob: Toolbox) -> None:
    async with (
        running(workspace, "charlie", asks("Which?")),
        running(workspace, "alice", says("Done.")) as alice,
    ):
        await asked(workspace)
        await alice.ended()
        denied(bob, 1)
        model = folded(workspace.journal)
        ordered = [
            (view.agent.id, view.status(model.time)) for view in order_agents(model.agents, model.time)
        ]
    assert ordered == [("charlie", "waiting"), ("bob", "running"), ("alice", "done")]
