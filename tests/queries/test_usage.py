"""Usage adds up by agent, model, day, task and session."""

from __future__ import annotations

import json

import pytest
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, MessageCompleted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.reads import UsageKey, summarize_usage
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.view import MAX_MODELS, UsageProjection, sum_usage
from watchroom.features.overview.fold import Fold
from watchroom_cli.main import main

ONE = UsageTotal(100, 10, 1000, cost=0.25, priced_by="client")
OTHER = UsageTotal(7, 3, unpriced=10)


@pytest.fixture
def used(workspace: Workspace) -> Workspace:
    for agent, session, model, what in (
        ("alice", "a-1", "big", ONE),
        ("alice", "a-2", "big", ONE),
        ("bob", "b-1", "", OTHER),
    ):
        told = ClientSession(workspace, agent, session, ClientInfo("claude"))
        told.record(MessageCompleted("Hello", model=model, used=what))
    return workspace


@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("agent", {"alice": ONE.plus(ONE), "bob": OTHER}),
        ("model", {"big": ONE.plus(ONE), "": OTHER}),
        ("day", {"today": ONE.plus(ONE).plus(OTHER)}),
        ("task", {"": ONE.plus(ONE).plus(OTHER)}),
        ("session", {"alice/a-1": ONE, "alice/a-2": ONE, "bob/b-1": OTHER}),
    ],
)
def test_it_adds_up(used: Workspace, by: UsageKey, parts: dict[str, UsageTotal]) -> None:
    found = summarize_usage(used.journal, by, day_of=lambda _: "today")
    assert found.parts == parts
    assert found.total == UsageTotal(207, 23, 2000, cost=0.5, unpriced=10, priced_by="client")


def test_the_model_of_the_dashboard_has_the_same_totals(used: Workspace) -> None:
    fold = Fold(used.journal.content, used.journal.row)
    fold.apply(used.journal.rows())
    usage = fold.model().usage
    assert usage.team == usage.since(0) == summarize_usage(used.journal, "day", day_of=str).total
    assert dict(usage.agents) == {"alice": ONE.plus(ONE), "bob": OTHER}


def test_the_command_prints_them(used: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    root = used.root
    used.close()
    assert main(["usage", root]) == 0
    table = capsys.readouterr().out
    assert [line.split()[0] for line in table.splitlines()[1:4]] == ["alice", "bob", "total"]
    assert "$0.50" in table
    assert "≥ $0.50" in table
    assert main(["usage", root, "--by", "model", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["parts"][1]["cost"] is None
    assert said["total"]["cost"] == 0.5


def test_so_many_models_are_told_apart_and_no_more(workspace: Workspace) -> None:
    told = ClientSession(workspace, "alice", "s", ClientInfo("claude"))
    row = told.record(MessageCompleted("Hello", model="m", used=UsageTotal(1)))
    assert row is not None
    usage = UsageProjection()
    for number in range(3 * MAX_MODELS):
        usage.apply_step(row._replace(detail_json=row.detail_json.replace('"m"', f'"m{number}"')))
    view = usage.current()
    assert len(view.models) == MAX_MODELS + 1
    assert sum_usage(view.models.values()) == view.team
    assert view is usage.current()
