"""Budgets are set from any screen, and changed with a confirmation."""

from __future__ import annotations

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, WIDE, dashboard
from tui.test_usage_screen import use
from watchroom import Workspace
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import Budget, Measure, format_amount
from watchroom.texts import catalogue
from watchroom_tui.dialogs.budget import BudgetKnown, BudgetOwner, parse_amount, suggest_amount
from watchroom_tui.formatters.labels import cost_text


async def test_a_budget_is_set_in_three_keys(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("0", "e")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        await user.sees("For", "the team", "used $0.00", "Limit in US dollars", "20")
        await user.press("enter")
        await user.is_told("Budget of the team: $20.00.")
    assert workspace.config.budgets.of("team", "") == [Budget("team", "", "cost", 20)]


async def test_a_budget_of_an_agent_is_typed(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.chooses("budget")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        while user.list("owners").item != BudgetOwner("agent", "alice"):
            await user.press("down")
        await user.press("right_square_bracket")
        await user.sees("Limit in tokens", "1000000")
        # A digit in the list begins the amount.
        await user.press("5")
        await user.type("00,000")
        await user.press("enter")
        await user.is_told("Budget of alice: 500,000 tokens.")
    assert workspace.config.budgets.of("agent", "alice") == [Budget("agent", "alice", "tokens", 500_000)]


async def test_a_budget_is_changed_and_removed(workspace: Workspace) -> None:
    ok(workspace.tools_for_human("dana"), "set_budget", scope="team", measure="cost", most=2.5)
    async with dashboard(workspace) as user:
        await user.press("0", "e")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        await user.sees("limit $2.50")
        await user.press("tab", "ctrl+u")
        await user.type("much")
        await user.press("enter")
        await user.is_told('"much" is not an amount.')
        await user.press("ctrl+u", "enter")
        await user.is_told("Budget removed: the team.")
    assert workspace.config.budgets.of("team", "") == []


async def test_leaving_the_form_changes_nothing(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("0", "e")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        await user.press("escape")
        await user.until(lambda: user.place == "usage", "the usage")
    assert workspace.config.budgets.of("team", "") == []


@pytest.mark.parametrize(
    ("measure", "known", "amount"),
    [
        ("cost", BudgetKnown(), 20),
        ("cost", BudgetKnown(used=11), 40),
        ("cost", BudgetKnown(used=11, most=12), 12),
        ("tokens", BudgetKnown(used=3_000_000), 8_000_000),
    ],
)
def test_the_suggested_amount_leaves_room(measure: Measure, known: BudgetKnown, amount: float) -> None:
    assert suggest_amount(measure, known) == amount


@pytest.mark.parametrize(
    ("text", "amount"), [("20", 20), ("$2.50", 2.5), (" 500,000 ", 500_000), ("", None), ("1_000", 1000)]
)
def test_amounts_are_read_as_people_type_them(text: str, amount: float | None) -> None:
    assert parse_amount(text) == amount


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
        await user.sees("▰▰▰▰▰ 100 %  $0.03 of $0.03  the next call is held")
        await user.sees(
            "▰▰▰▰▱  80 %  $0.04 of $0.05", "the team  ▰▱▱▱▱  14 %  $0.07 of $0.50  calls continue"
        )
        budgets = user.list("budgets")
        assert [each.budget.key for each in budgets.items] == [
            "agent bob cost",
            "agent alice cost",
            "team cost",
        ]
        styles = [
            {span.style for cell in budgets.cells(each) for span in cell if "▰" in span.text}
            for each in budgets.items
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
            assert "▰▰▰▰▰ $0.03 of $0.03  held" in said["bob"]
        else:
            assert "▰▰▰▰▱ $0.04 of $0.05  at 100 % the next call is held" in said["alice"]
            assert "▰▰▰▰▰ $0.03 of $0.03  the next call is held" in said["bob"]


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
    assert cost_text(UsageTotal(cost=amount)) == shown


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_unpriced_usage_is_no_zero_and_is_limited_in_tokens(
    workspace: Workspace, size: tuple[int, int]
) -> None:
    use(workspace, "alice", "m", UsageTotal(1000, 500, unpriced=1500))
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("0", "usage")
        await user.press("e")
        await user.until(lambda: user.place == "BudgetDialog", "the form")
        await user.sees("Limit in tokens", "used 1,500 tokens")
        await user.press("left_square_bracket")
        await user.sees("Limit in US dollars", "1.5k tokens without a known price")
        shown = [line for line in user.lines() if "the team" in line or "alice" in line]
        assert not any("$0.00" in line for line in shown)


async def test_a_little_use_is_more_than_nothing(workspace: Workspace) -> None:
    ok(workspace.tools_for_human("dana"), "set_budget", scope="team", name=None, measure="cost", most=20)
    use(workspace, "alice", "m", UsageTotal(1, 1, cost=0.061, priced_by="client"))
    async with dashboard(workspace) as user:
        await user.goes_to("0", "usage")
        await user.sees("the team  ▰▱▱▱▱ <1 %  $0.061 of $20.00  calls continue")
        await user.sees_no("$0.0610")
