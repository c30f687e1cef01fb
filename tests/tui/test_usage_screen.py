"""Agents' usage over time, by agent, model and task, and in the header."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tui.driver import MIDDLE, NARROW, dashboard
from watchroom import Agent, Workspace
from watchroom.agents.clients.events import ClientInfo, MessageCompleted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal
from watchroom_tui.formatters.bar_chart import Bar, draw_bars


def use(workspace: Workspace, agent: str, model: str, used: UsageTotal) -> None:
    told = ClientSession(workspace, agent, "s-1", ClientInfo("claude"))
    told.record(MessageCompleted("Hello", model=model, used=used))


async def test_nothing_was_used_yet(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("0", "usage")
        await user.sees("No usage yet")


@pytest.mark.parametrize("size", [NARROW, MIDDLE])
async def test_usage_is_shown_by_agent_model_and_task(workspace: Workspace, size: tuple[int, int]) -> None:
    use(workspace, "alice", "big-model", UsageTotal(1500, 200, 30_000, cost=1.25, priced_by="client"))
    use(workspace, "bob", "", UsageTotal(70, 30, unpriced=100))
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("0", "usage")
        await user.sees("Cost per 15 minutes", "$1.25", "1.5k in", "200 out")
        (unpriced,) = [line for line in user.lines() if "bob" in line]
        assert "–" in unpriced
        use(workspace, "alice", "big-model", UsageTotal(cost=2.0, priced_by="client"))
        await user.sees("$3.25")
        if size == MIDDLE:
            await user.sees("≥ $3.25 today", "unnamed model")
        else:
            await user.press("tab")
            await user.sees("unnamed model")


async def test_tasks_with_the_same_text_are_shown_separately(workspace: Workspace, tmp_path: Path) -> None:
    for number, agent in enumerate(("lead", "second")):
        task = workspace.tasks.submit("human:dana", "Build it.", tmp_path / agent)
        workspace.register([Agent(agent, task=task.id)])
        use(workspace, agent, "", UsageTotal(1, 1, cost=1.0 + number, priced_by="client"))
    async with dashboard(workspace) as user:
        await user.goes_to("0", "usage")
        await user.until(lambda: len(user.list("by-task").items) == 2, "both tasks")
        await user.until(lambda: "$1.00" in user.words_in("#by-task"), "the cost of one")
        assert "$2.00" in user.words_in("#by-task")


async def test_enter_leads_to_the_agent(workspace: Workspace) -> None:
    use(workspace, "bob", "big-model", UsageTotal(1, 1, cost=1.0, priced_by="client"))
    async with dashboard(workspace) as user:
        await user.goes_to("0", "usage")
        await user.sees("$1.00")
        await user.press("enter")
        await user.until(lambda: user.place == "agents", "the agents")
        chosen = user.list("agents").item
        assert chosen is not None
        assert chosen.agent.id == "bob"


@pytest.mark.parametrize("width", [0, 5, 20, 80])
def test_bars_never_need_more_than_their_space(width: int) -> None:
    bars = [Bar(value, f"{value:02.0f}") for value in range(24)]
    for height in range(6):
        lines = draw_bars(bars, width, height, "${:.2f}".format)
        assert len(lines) <= height
        assert all(sum(len(span.text) for span in line) <= max(0, width) for line in lines)


def test_the_newest_stay_and_the_highest_is_as_high_as_there_is_space() -> None:
    lines = [
        "".join(span.text for span in line)
        for line in draw_bars([Bar(1, "a"), Bar(4, "b")], 9, 5, "{:.0f}".format)
    ]
    assert [line.count("█") for line in lines] == [*sorted(line.count("█") for line in lines[:-1]), 0]
    assert "█" in lines[0]
    assert all(len(one) == len(other) for one, other in pairwise(lines[:-1]))


def test_the_scale_is_the_value_of_the_highest_drawn_bar() -> None:
    lines = draw_bars([Bar(900, "a"), Bar(1, "b"), Bar(4, "c")], 9, 5, "{:.0f}".format)
    assert lines[0][0].text.strip() == "4"
    assert "a" not in lines[-1][0].text
