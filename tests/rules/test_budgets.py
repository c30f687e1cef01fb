"""Budgets: what the config may say of them, and how much of them is used."""

from __future__ import annotations

from typing import Any

import pytest
from rules.rows import row
from watchroom.errors import ConfigInvalid
from watchroom.features.budgets.rules import (
    Budget,
    BudgetUse,
    Used,
    budget_asked,
    budget_key,
    budget_request,
    check_budgets,
    describe_use,
    dump_budgets,
    format_amount,
    measure_budgets,
    parse_budgets,
    raised_amount,
    used_in,
)
from watchroom.features.requests.rows import Request
from watchroom.texts import catalogue

TEXTS = catalogue("en")
TABLE: dict[str, Any] = {
    "session": {"steps": 100},
    "team": {"cost": 5.0, "tokens": 1000},
    "agents": {"alice": {"cost": 2}},
    "sessions": {"alice/s1": {"steps": 200, "seconds": 60}},
}
ALICE = Budget("agent", "alice", "cost", 2.0)


@pytest.mark.parametrize(
    "table",
    [
        {},
        TABLE,
        {"team": {"cost": 1e12}},
        {"team": {"cost": 0.01}},
        {"agents": {f"a{n}": {"steps": 1} for n in range(500)}},
        {"tasks": {"t" * 500: {"steps": 1}}},
        {"sessions": {"alice/s1/sub": {"steps": 1}}},
    ],
    ids=lambda table: str(table)[:50],
)
def test_a_table_at_its_bounds_is_read_and_written_again(table: dict[str, Any]) -> None:
    budgets = parse_budgets(table)
    assert dump_budgets(budgets) == table
    assert parse_budgets(dump_budgets(budgets)) == budgets


@pytest.mark.parametrize(
    ("table", "entry"),
    [
        ([], "budgets"),
        ({"other": {}}, "budgets.other"),
        ({"agents": []}, "budgets.agents"),
        ({"agents": {f"a{n}": {"steps": 1} for n in range(501)}}, "budgets.agents"),
        ({"team": 5}, "budgets.team"),
        ({"team": {"money": 5}}, "budgets.team.money"),
        ({"team": {"cost": 0}}, "budgets.team.cost = 0"),
        ({"team": {"cost": -1}}, "budgets.team.cost = -1"),
        ({"team": {"cost": 1e12 + 1}}, "budgets.team.cost = "),
        ({"team": {"cost": True}}, "budgets.team.cost = True"),
        ({"team": {"cost": "5"}}, "budgets.team.cost = '5'"),
        ({"team": {"cost": float("nan")}}, "budgets.team.cost = nan"),
        ({"agents": {"alice": {"cost": 0}}}, "budgets.agents.alice.cost"),
        ({"tasks": {"": {"cost": 1}}}, "budgets.task: "),
        ({"tasks": {"t" * 501: {"cost": 1}}}, "budgets.task: ttt"),
        ({"tasks": {"a\nb": {"cost": 1}}}, "budgets.task: a"),
    ],
    ids=lambda table: str(table)[:50],
)
def test_what_is_beyond_the_bounds_is_refused_by_its_place(table: object, entry: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse_budgets(table)
    assert str(refused.value.values["problem"]).startswith(entry)


@pytest.mark.parametrize(
    ("scope", "name"),
    [("agents", "no id!"), ("sessions", "alice"), ("sessions", "no id!/s1"), ("sessions", "alice/s1/no id!")],
)
def test_a_budget_is_of_somebody_who_can_be(scope: str, name: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse_budgets({scope: {name: {"steps": 1}}})


def test_a_budget_of_its_own_holds_in_place_of_that_of_all() -> None:
    budgets = parse_budgets(TABLE)
    assert budgets.of("session", "bob/s1") == [Budget("session", "bob/s1", "steps", 100)]
    assert budgets.of("session", "alice/s1") == [
        Budget("session", "alice/s1", "seconds", 60),
        Budget("session", "alice/s1", "steps", 200),
    ]
    assert [each.measure for each in budgets.of("team", "")] == ["cost", "tokens"]
    assert budgets.of("task", "t1") == []
    assert [budgets.has(scope) for scope in ("session", "agent", "task", "team")] == [True, True, False, True]


def test_a_budget_is_changed_added_and_taken_away() -> None:
    budgets = parse_budgets(TABLE)
    more = budgets.with_budget("agent", "alice", "cost", 3).with_budget("agent", "alice", "steps", 9)
    assert more.of("agent", "alice") == [
        Budget("agent", "alice", "cost", 3),
        Budget("agent", "alice", "steps", 9),
    ]
    assert more.of("session", "alice/s1") == budgets.of("session", "alice/s1")
    assert not budgets.with_budget("agent", "alice", "cost", None).has("agent")
    all_tasks = budgets.with_budget("task", "", "steps", 7)
    assert all_tasks.of("task", "t1") == [Budget("task", "t1", "steps", 7)]
    assert all_tasks.with_budget("task", "", "steps", None) == budgets
    assert [each.measure for each in budgets.with_budget("team", "", "cost", None).of("team", "")] == [
        "tokens"
    ]
    for name, most in (("alice", 0.0), ("no id!", 1.0), ("", -1.0)):
        with pytest.raises(ConfigInvalid):
            budgets.with_budget("agent", name, "cost", most)
    with pytest.raises(ConfigInvalid):
        budgets.with_budget("team", "all", "cost", 1)


def test_of_the_budgets_by_name_the_oldest_goes_where_there_are_too_many() -> None:
    budgets = parse_budgets(
        {"agents": {f"a{n}": {"steps": 1} for n in range(500)}, "tasks": {"t": {"steps": 1}}}
    )
    more = budgets.with_budget("agent", "b", "steps", 1)
    assert [name for scope, name in more.named if scope == "agent"] == [f"a{n}" for n in range(1, 500)] + [
        "b"
    ]
    assert more.has("task")
    # Who gets another amount is the newest.
    again = budgets.with_budget("agent", "a0", "steps", 2).with_budget("agent", "b", "steps", 1)
    assert (again.of("agent", "a0"), again.of("agent", "a1")) == ([Budget("agent", "a0", "steps", 2)], [])


@pytest.mark.parametrize(
    ("used", "most", "is_near", "is_reached"),
    [
        (0.79, 1, False, False),
        (0.8, 1, True, False),
        (0.04, 0.05, True, False),
        (0.1 + 0.2, 0.3, True, True),
        (0.999, 1, True, False),
        (1, 1, True, True),
        (2, 1, True, True),
    ],
)
def test_a_budget_is_near_at_four_fifths_and_reached_at_all_of_it(
    used: float, most: float, is_near: bool, is_reached: bool
) -> None:
    use = BudgetUse(ALICE._replace(most=most), used)
    assert (use.is_near, use.is_reached) == (is_near, is_reached)


def test_what_sessions_used_is_added_up_and_measured() -> None:
    steps = [
        row({"cost": 1.0, "tokens": [10, 5], "seconds": 2.0, "step": 3, "unpriced": 4}),
        row({"cost": 0.5, "tokens": [1, 1], "seconds": 1, "step": 1}),
    ]
    used = used_in(steps)
    assert used == Used(1.5, 17, 3.0, 4, 4)
    assert [used.of(measure) for measure in ("cost", "tokens", "seconds", "steps")] == [1.5, 17, 3.0, 4]
    budgets = parse_budgets({"agents": {"alice": {"cost": 2, "tokens": 1000}}, "team": {"steps": 4}})
    of_both = {("agent", "alice"): used, ("team", ""): used}
    cost, tokens, of_team = measure_budgets(budgets, of_both)  # type: ignore[arg-type]
    assert cost == BudgetUse(Budget("agent", "alice", "cost", 2), 1.5, 4)
    assert (tokens.used, of_team.used) == (17, 4)
    assert check_budgets(budgets, of_both) == [of_team]  # type: ignore[arg-type]


def test_reached_budgets_come_first_and_money_before_the_rest() -> None:
    budgets = parse_budgets({"agent": {"steps": 10, "cost": 10}, "team": {"tokens": 10, "cost": 100}})
    used = {("agent", "alice"): Used(cost=9, steps=10), ("team", ""): Used(cost=200, tokens=9)}
    found = check_budgets(budgets, used)  # type: ignore[arg-type]
    assert [(each.budget.scope, each.budget.measure) for each in found] == [
        ("team", "cost"),
        ("agent", "steps"),
        ("agent", "cost"),
        ("team", "tokens"),
    ]


@pytest.mark.parametrize(
    ("measure", "amount", "text"),
    [
        ("cost", 0.1, "$0.10"),
        ("cost", 0.0999, "$0.0999"),
        ("cost", 0.05, "$0.05"),
        ("cost", 0.012, "$0.012"),
        ("cost", 1234.5, "$1,234.50"),
        ("tokens", 1234.4, "1,234 tokens"),
    ],
)
def test_an_amount_is_read_with_parts_of_a_cent_below_ten(measure: Any, amount: float, text: str) -> None:
    assert format_amount(TEXTS, measure, amount) == text


@pytest.mark.parametrize(
    ("measure", "most", "used", "raised"),
    [
        ("cost", 2.0, 2.0, 4.0),
        ("cost", 2.0, 2.001, 4.01),
        ("cost", 0.1, 0.2, 0.3),
        ("steps", 10.0, 10.0, 20),
        ("seconds", 10.0, 10.2, 21),
    ],
)
def test_a_budget_is_raised_by_as_much_again_from_here(
    measure: Any, most: float, used: float, raised: float
) -> None:
    assert raised_amount(BudgetUse(Budget("team", "", measure, most), used)) == raised


def test_a_request_about_a_budget_says_how_much_is_used_and_what_has_no_price() -> None:
    use = BudgetUse(ALICE, 2.5, 1200)
    request = budget_request(use, "alice/s1/budget-1", TEXTS)
    assert describe_use(use, TEXTS) in request.prompt
    assert "1,200" in request.prompt
    assert [option.value for option in request.options] == ["raise", "once", "stop"]
    asked = budget_asked(request)
    assert asked == {
        **ALICE._asdict(),
        "used": 2.5,
        "unpriced": 1200,
        "to": 4.5,
        "request": "alice/s1/budget-1",
    }
    assert budget_key(asked) == ALICE.key == "agent alice cost"
    assert Budget("team", "", "cost", 1).key == "team cost"
    assert "1,200" not in budget_request(use._replace(unpriced=0), "p", TEXTS).prompt
    steps = BudgetUse(ALICE._replace(measure="steps"), 2.5, 1200)
    assert "1,200" not in budget_request(steps, "p", TEXTS).prompt
    for other in (Request("select", "?"), Request("select", "?", metadata={"budget": 5})):
        assert budget_asked(other) is None
