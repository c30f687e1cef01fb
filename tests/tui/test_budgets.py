"""Budgets are set from any screen, and asked about like anything else."""

from __future__ import annotations

import pytest
from tui.driver import dashboard
from watchroom import Json, Workspace
from watchroom.rules.budgets import Budget
from watchroom_tui.services.budget_setting import parse_budget


async def test_a_budget_is_set_from_the_palette(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.chooses("budget")
        await user.sees("Set a budget")
        await user.type("agent nobody cost 5")
        await user.press("enter")
        await user.is_told("nobody")
        await user.chooses("budget")
        # What was refused is there to be mended.
        await user.sees("agent nobody cost 5")
        await user.press("ctrl+u")
        await user.type("team cost 2.50")
        await user.press("enter")
        await user.is_told("Set: team cost 2.50.")
    assert workspace.config.budgets.of("team", "") == [Budget("team", "", "cost", 2.5)]


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
def test_what_is_none(text: str) -> None:
    assert parse_budget(text) is None
