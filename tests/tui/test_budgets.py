"""Budgets are set from any screen, and changed with a confirmation."""

from __future__ import annotations

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, WIDE, dashboard
from tui.test_usage_screen import use
from watchroom import Json, Workspace
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import Budget, format_amount
from watchroom.texts import catalogue
from watchroom_tui.services.budget_setting import parse_budget


async def test_a_budget_is_set_from_the_palette(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.chooses("budget")
        await user.sees("Set a budget")
        await user.type("agent nobody cost 5")
        await user.press("enter")
        await user.is_told("nobody")
        await user.chooses("budget")
        # A refused text can be corrected.
        await user.sees("agent nobody cost 5")
        await user.press("ctrl+u")
        await user.type("team cost 2.50")
        await user.press("enter")
        await user.is_told("Set: team cost 2.50.")
    assert workspace.config.budgets.of("team", "") == [Budget("team", "", "cost", 2.5)]


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_what_is_used_of_budgets_and_what_comes_next_is_seen(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    dana = workspace.tools_for_human("dana")
    for scope, name, most in (("team", None, 0.5), ("agent", "alice", 0.05), ("agent", "bob", 0.03)):
        ok(dana, "set_budget", scope=scope, name=name, measure="cost", most=most)
    use(workspace, "alice", "m", UsageTotal(1, 1, cost=0.04, priced_by="client"))
    use(workspace, "bob", "m", UsageTotal(1, 1, cost=0.03, priced_by="client"))
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("0", "usage")
        await user.sees("▰▰▰▰▰ 100 % $0.03 of $0.03 the next call is held")
        await user.sees("▰▰▰▰▱  80 % $0.04 of $0.05", "the team ▰▱▱▱▱  14 % $0.07 of $0.50 calls continue")
        budgets = user.list("budgets")
        assert [each.budget.key for each in budgets.items] == [
            "agent bob cost",
            "agent alice cost",
            "team cost",
        ]
        styles = [
            {span.style for span in budgets.line(each, 70) if "▰" in span.text} for each in budgets.items
        ]
        assert styles == [{"error"}, {"warning"}, {"dim"}]
        await user.goes_to("2", "agents")
        await user.sees("▰")
        said = {
            name: line for line in user.lines() for name in ("alice", "bob") if name in line and "▰" in line
        }
        if size == NARROW:
            assert "▰▰▰▰▱  80 %" in said["alice"]
            assert "▰▰▰▰▰  held" in said["bob"]
        elif size == MIDDLE:
            assert "▰▰▰▰▱ $0.04 of $0.05 " in said["alice"]
            assert "▰▰▰▰▰ $0.03 of $0.03 held" in said["bob"]
        else:
            assert "▰▰▰▰▱ $0.04 of $0.05 at 100 % the next call is held" in said["alice"]
            assert "▰▰▰▰▰ $0.03 of $0.03 the next call is held" in said["bob"]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (0.05, "$0.05"),
        (0.012, "$0.012"),
        (0.00421, "$0.0042"),
        (0.1 + 0.2, "$0.30"),
        (1e4, "$10,000.00"),
    ],
)
def test_little_money_is_told_in_parts_of_a_cent(amount: float, shown: str) -> None:
    assert format_amount(catalogue("en"), "cost", amount) == shown


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("team cost $20", {"scope": "team", "name": None, "measure": "cost", "most": 20.0}),
        ("agent alice tokens 500,000", {"scope": "agent", "name": "alice", "measure": "tokens", "most": 5e5}),
        ("task steps none", {"scope": "task", "name": None, "measure": "steps", "most": None}),
    ],
)
def test_what_is_a_budget(text: str, arguments: Json) -> None:
    call = parse_budget(text)
    assert call is not None
    assert call.arguments == arguments


@pytest.mark.parametrize("text", ["", "team cost", "team cost much", "a b c 1 2"])
def test_invalid_budgets_are_rejected(text: str) -> None:
    assert parse_budget(text) is None
