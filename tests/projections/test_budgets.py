"""What is used of budgets, folded from rows, is what holds calls over them."""

from __future__ import annotations

from calls import ok
from projections.folding import folded
from watchroom import Agent, Workspace
from watchroom.agents.clients.events import ClientInfo, MessageCompleted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import Used


def use(workspace: Workspace, agent: str, session: str, cost: float) -> None:
    told = ClientSession(workspace, agent, session, ClientInfo("claude"))
    told.record(MessageCompleted("Hello", model="m", used=UsageTotal(1, 1, cost=cost, priced_by="client")))


def shares(workspace: Workspace) -> list[tuple[str, float, bool, bool]]:
    return [
        (use.budget.key, use.share, use.is_near, use.is_reached) for use in folded(workspace.journal).budgets
    ]


def test_each_budget_of_agents_tasks_and_the_team_is_told_with_what_is_used_of_it(
    workspace: Workspace,
) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("bob", task=task.id)])
    use(workspace, "alice", "one", 0.02)
    use(workspace, "alice", "two", 0.02)
    use(workspace, "bob", "one", 0.01)
    assert shares(workspace) == []
    dana = workspace.tools_for_human("dana")
    for scope, name, most in (("team", None, 0.5), ("agent", "alice", 0.05), ("task", None, 0.01)):
        ok(dana, "set_budget", scope=scope, name=name, measure="cost", most=most)
    assert shares(workspace) == [
        (f"task {task.id} cost", 1.0, True, True),
        ("agent alice cost", 0.8, True, False),
        ("team cost", 0.1, False, False),
    ]
    use(workspace, "alice", "one", 0.02)
    told = folded(workspace.journal).budgets
    for agent in ("alice", "bob"):
        near = workspace.budgets.check(agent)
        assert near
        assert [each for each in near if each not in told] == []
    ok(dana, "set_budget", scope="agent", name="alice", measure="cost")
    assert [key for key, *_ in shares(workspace)] == [f"task {task.id} cost", "team cost"]


def test_what_nobody_used_is_told_too(workspace: Workspace) -> None:
    ok(workspace.tools_for_human("dana"), "set_budget", scope="agent", measure="steps", most=10)
    told = folded(workspace.journal).budgets
    assert [(each.budget.name, each.used) for each in told] == [
        (agent, Used().steps) for agent in sorted(workspace.config.agents)
    ]
