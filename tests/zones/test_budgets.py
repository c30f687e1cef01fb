"""Budgets as calls meet them: when one is warned of, held and let go on, and what people are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from calls import ok, refused
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import UnknownAgent
from watchroom.features.budgets.rules import Budget, BudgetUse, Measure, budget_request, find_budget_use
from watchroom.features.requests.rows import Answer, Request, dump_request, parse_request
from watchroom.kernel.call_context import CallContext
from watchroom.model import Row, Write
from watchroom.texts import LANGUAGES, catalogue


@pytest.fixture
def dana(workspace: Workspace) -> Toolbox:
    return workspace.tools_for_human("dana")


def use(workspace: Workspace, path: str, **detail: object) -> None:
    """The session at ``path`` has used so much by now."""
    step = Write(path.partition("/")[0], "step", "session", path, "{}", detail={"status": "idle", **detail})  # type: ignore[dict-item]
    workspace.journal.append([step])


def near(workspace: Workspace, agent: str, session: str = "", steps_from: int = 0) -> list[tuple[str, float]]:
    found: list[BudgetUse] = workspace.budgets.check(agent, session, steps_from)
    return [(each.budget.key, each.used) for each in found]


def told(workspace: Workspace, tool: str) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=10_000) if row.tool == tool]


def test_each_scope_counts_what_its_sessions_used(workspace: Workspace) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("bob", task=task.id), Agent("charlie", task=task.id)])
    for path, steps in (("alice/s1", 1), ("alice/s10", 4), ("bob/s1", 8), ("charlie/s1", 16)):
        use(workspace, path, step=steps)
    use(workspace, "alice/s2.sub", step=2, parent="alice/s2")
    assert near(workspace, "alice", "alice/s1") == []
    for scope in ("session", "agent", "task", "team"):
        workspace.budgets.set_budget(CallContext("human:dana"), scope, "", "steps", 1)
    assert near(workspace, "alice", "alice/s1") == [
        ("session alice/s1 steps", 1),
        ("agent alice steps", 7),
        ("team steps", 31),
    ]
    assert near(workspace, "alice", "alice/s2")[0] == ("session alice/s2 steps", 2)
    assert near(workspace, "alice", "alice/s2", 1)[0] == ("session alice/s2 steps", 1)
    assert near(workspace, "alice", "alice/s2", 2)[0][0] == "agent alice steps"
    assert near(workspace, "bob") == [
        ("agent bob steps", 8),
        (f"task {task.id} steps", 24),
        ("team steps", 31),
    ]
    assert near(workspace, "nobody") == [("team steps", 31)]


def test_who_is_near_is_warned_once_and_who_is_at_the_end_is_asked_once(workspace: Workspace) -> None:
    budgets = workspace.budgets
    budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 10)
    use(workspace, "alice/s1", step=7)
    assert budgets.hold_call("alice", "alice/s1") is None
    assert told(workspace, "budget_warning") == []
    use(workspace, "alice/s1", step=8)
    for _ in range(2):
        assert budgets.hold_call("alice", "alice/s1") is None
    (warning,) = told(workspace, "budget_warning")
    assert (warning.path, warning.detail["used"], warning.detail["most"]) == ("agent alice steps", 8, 10)
    use(workspace, "alice/s1", step=10)
    asked = budgets.hold_call("alice", "alice/s1")
    assert asked is not None
    assert budgets.hold_call("alice") == asked
    (row,) = [row for row in workspace.journal.rows(limit=10_000) if row.zone == "request"]
    assert row.path.startswith("alice/s1/budget-")
    assert budgets.find_open_request("agent alice steps") == asked
    assert budgets.find_open_request("agent bob steps") is None


def test_calls_without_a_session_are_asked_about_among_the_agents_calls(workspace: Workspace) -> None:
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 1)
    use(workspace, "alice/s1", step=1)
    assert workspace.budgets.hold_call("alice") is not None
    (row,) = [row for row in workspace.journal.rows(limit=10_000) if row.zone == "request"]
    assert row.path.startswith("alice/calls/budget-")


def test_a_budget_that_is_set_anew_lets_go_of_the_calls_that_it_held(workspace: Workspace) -> None:
    budgets = workspace.budgets
    use(workspace, "alice/s1", step=5)
    for scope, name in (("agent", "alice"), ("agent", ""), ("session", ""), ("team", "")):
        budgets.set_budget(CallContext("human:dana"), scope, "", "steps", 5)  # type: ignore[arg-type]
        asked = budgets.hold_call("alice", "alice/s1")
        assert asked is not None
        key = f"{scope} {'' if scope == 'team' else 'alice/s1' if scope == 'session' else 'alice'} steps"
        key = " ".join(key.split())
        assert budgets.find_open_request(key) == asked
        assert budgets.set_budget(CallContext("human:dana"), scope, name, "steps", 9) is not None  # type: ignore[arg-type]
        assert budgets.find_open_request(key) is None
        for each in (name, ""):
            budgets.set_budget(CallContext("human:dana"), scope, each, "steps", None)  # type: ignore[arg-type]
    assert budgets.set_budget(CallContext("human:dana"), "agent", "alice", "cost", None) is None


@pytest.mark.parametrize("is_asked", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("most", [100, None])
def test_a_budget_that_is_set_anew_while_people_are_asked_holds_no_call(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, is_asked: bool, most: float | None
) -> None:
    """Nobody would withdraw the question, and the call would wait for ever."""
    dana, ask = CallContext("human:dana"), workspace.requests.ask
    use(workspace, "alice/s1", step=3)
    workspace.budgets.set_budget(dana, "agent", "", "steps", 1)

    def ask_amid(*arguments: Any, **more: Any) -> Row:
        row = ask(*arguments, **more) if is_asked else None
        workspace.budgets.set_budget(dana, "agent", "", "steps", most)
        return ask(*arguments, **more) if row is None else row

    monkeypatch.setattr(workspace.requests, "ask", ask_amid)
    assert workspace.budgets.hold_call("alice", "alice/s1") is None
    assert [row.version for row in workspace.journal.heads("request", "alice/")] == [2]


@pytest.mark.parametrize(
    ("scope", "name", "is_known"),
    [
        ("agent", "alice", True),
        ("agent", "nobody", False),
        ("session", "alice/new", True),
        ("session", "nobody/s1", False),
        ("task", "nobody", True),
    ],
)
def test_a_budget_of_its_own_is_of_an_agent_that_is_there(
    workspace: Workspace, scope: str, name: str, is_known: bool
) -> None:
    measure: Measure = "steps"
    if is_known:
        assert workspace.budgets.set_budget(CallContext("human:dana"), scope, name, measure, 5)  # type: ignore[arg-type]
    else:
        with pytest.raises(UnknownAgent):
            workspace.budgets.set_budget(CallContext("human:dana"), scope, name, measure, 5)  # type: ignore[arg-type]


def test_a_person_who_sets_a_budget_is_told_of_in_its_row(workspace: Workspace, dana: Toolbox) -> None:
    ok(dana, "set_budget", scope="team", measure="cost", most=5)
    (row,) = told(workspace, "set_budget")
    assert (row.actor, row.detail) == (
        "human:dana",
        {"scope": "team", "name": "", "measure": "cost", "most": 5},
    )


def reached(workspace: Workspace, choice: str) -> Request:
    """Alice's budget of 10 steps is used up, and a person chose that."""
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 10)
    use(workspace, "alice/s1", step=10)
    asked = workspace.budgets.hold_call("alice", "alice/s1")
    assert asked is not None
    assert workspace.budgets.find_stop("alice", "alice/s1") is None
    (row,) = [row for row in workspace.journal.rows(limit=10_000) if row.zone == "request"]
    workspace.requests.answer(CallContext("human:dana"), row.seq, Answer(values=(choice,)))
    return asked


def test_a_budget_about_which_a_person_said_that_this_is_the_end_holds(workspace: Workspace) -> None:
    reached(workspace, "stop")
    stop = workspace.budgets.find_stop("alice", "alice/s1")
    assert stop is not None
    assert "10" in stop
    assert workspace.budgets.find_stop("bob") is None
    # Of another amount nobody said so.
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 9)
    assert workspace.budgets.find_stop("alice", "alice/s1") is None


def test_a_budget_that_a_person_raised_holds_at_once_as_raised(workspace: Workspace) -> None:
    asked = reached(workspace, "raise")
    assert workspace.budgets.hold_call("alice", "alice/s1") is None
    assert near(workspace, "alice", "alice/s1") == []
    use(workspace, "alice/s1", step=20)
    assert near(workspace, "alice", "alice/s1") == [("agent alice steps", 20)]
    workspace.budgets.raise_budget(CallContext("human:dana"), asked)
    assert workspace.config.budgets.of("agent", "alice") == [Budget("agent", "alice", "steps", 20)]
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 30)
    workspace.budgets.raise_budget(CallContext("human:dana"), asked)
    assert workspace.config.budgets.of("agent", "alice") == [Budget("agent", "alice", "steps", 30)]


def test_a_call_that_a_person_let_pass_once_does_not_end_the_budget(workspace: Workspace) -> None:
    reached(workspace, "once")
    assert workspace.budgets.find_stop("alice", "alice/s1") is None
    assert near(workspace, "alice", "alice/s1") == [("agent alice steps", 10)]


def test_only_a_budget_that_is_reached_holds_and_not_one_that_is_near(workspace: Workspace) -> None:
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 10)
    workspace.budgets.set_budget(CallContext("human:dana"), "team", "", "steps", 12)
    use(workspace, "alice/s1", step=10)
    asked = workspace.budgets.hold_call("alice")
    assert asked is not None
    assert workspace.budgets.find_open_request("team steps") is None
    assert len(told(workspace, "budget_warning")) == 2


def test_a_stop_holds_until_this_budget_is_changed(workspace: Workspace) -> None:
    """Other budgets, and other settings, may change meanwhile."""
    reached(workspace, "stop")
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "bob", "steps", 5)
    workspace.budgets.set_budget(CallContext("human:dana"), "team", "", "tokens", 500)
    assert workspace.budgets.find_stop("alice", "alice/s1") is not None
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 30)
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 10)
    assert workspace.budgets.find_stop("alice", "alice/s1") is None


def test_the_newest_answer_about_a_budget_counts(workspace: Workspace) -> None:
    reached(workspace, "stop")
    asked = workspace.budgets.hold_call("alice", "alice/s1")
    assert asked is not None
    assert workspace.budgets.find_stop("alice", "alice/s1") is not None
    rows = [row for row in workspace.journal.rows(limit=10_000) if row.zone == "request" and row.version == 1]
    workspace.requests.answer(CallContext("human:dana"), rows[-1].seq, Answer(values=("once",)))
    assert workspace.budgets.find_stop("alice", "alice/s1") is None


@pytest.mark.parametrize(
    "changed",
    [
        {"used": 9},
        {"used": "10"},
        {"used": 11, "to": 21},
        pytest.param({"used": float("nan")}, marks=pytest.mark.sqlite("A server refuses rows with NaN.")),
        {"most": 0},
        {"most": 10**400},
        {"unpriced": -1},
        {"scope": "all"},
        {"measure": "hours"},
        {"name": 5},
        {"to": 21},
        {"more": 1},
        None,
    ],
)
def test_a_person_raises_no_budget_by_a_request_that_is_not_true(
    workspace: Workspace, dana: Toolbox, changed: dict[str, object] | None
) -> None:
    """An agent asks in Watchroom's words, but for one of them."""
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 10)
    use(workspace, "alice/s1", step=10)
    path = "alice/s1/budget-1"
    texts = catalogue("en")
    use_said = BudgetUse(Budget("agent", "alice", "steps", 10), 10)
    if changed is not None and changed.get("used") == 11:
        # All of it fits together, but less is used.
        use_said = use_said._replace(used=11)
    request = budget_request(use_said, path, texts)
    about = {**request.metadata["budget"], **(changed or {})}  # type: ignore[dict-item]
    planted = replace(request, metadata={"budget": about})
    if changed is None:
        planted = replace(planted, prompt="Agent alice has used 10 steps of its budget of 500 steps.")
    number = workspace.requests.ask(CallContext("alice"), path, planted).seq
    error = refused(dana, "answer_request", request=number, values=["raise"])
    assert error["error"] == "invalid_answer"
    assert workspace.config.budgets.of("agent", "alice") == [Budget("agent", "alice", "steps", 10)]
    assert workspace.requests.ended(path) is None


def test_a_request_about_a_budget_is_known_in_each_language(workspace: Workspace) -> None:
    use_said = BudgetUse(Budget("session", "alice/s1", "cost", 0.5), 0.75, 1200)
    for language in LANGUAGES:
        request = budget_request(use_said, "alice/s1/budget-1", catalogue(language))
        assert find_budget_use(parse_request(dump_request(request)), "alice/s1/budget-1") == use_said
        assert find_budget_use(request, "alice/s1/budget-2") is None
