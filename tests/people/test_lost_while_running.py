"""Enrolments that are deleted while processes run, and what hides that they are gone."""

from __future__ import annotations

from people.conftest import Team
from people.effects import REQUEST
from people.planted import plant
from people.test_lost_enrolments import delete_people
from watchroom import Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import decide_all, dump_answer
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER

PATH = "alice/1/1"


def plant_approval(team: Team, number: int) -> None:
    plant(
        *(team.root, "human:eve", ANSWER, "request", PATH),
        content=dump_answer(decide_all(REQUEST, True)),
        detail={"request": number, "outcome": "approved"},
        version=2,
        base=1,
    )


def test_a_running_process_does_not_take_the_workspace_for_open(team: Team) -> None:
    """The one that runs agents has the workspace open all the time."""
    with Workspace.open(team.root, create=False) as running:
        number = running.requests.ask(CallContext("alice"), PATH, REQUEST).seq
        delete_people(team.root)
        plant_approval(team, number)
        assert running.requests.ended(PATH, REQUEST) is None


def test_the_model_does_not_take_a_workspace_without_enrolments_for_open(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    with Workspace.open(team.root, create=False) as workspace:
        number = workspace.requests.ask(CallContext("alice"), PATH, REQUEST).seq
        plant_approval(team, number)
        assert workspace.requests.ended(PATH, REQUEST) is None
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [each.row.seq for each in model.requests] == [number]


def test_no_planted_row_hides_that_enrolments_are_gone(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    plant(team.root, "system", "lay_out", "workspace", "people", detail={"idempotency_key": "people_lost"})
    with Workspace.open(team.root, create=False) as workspace:
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [need.row.tool for need in model.needs if need.kind == "forged"] == ["people_lost"]
