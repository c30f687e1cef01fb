"""Later versions that are planted where a first or second one decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok
from people.conftest import DANA, EVE, STRANGER, Team
from people.effects import REQUEST, TASK
from people.planted import plant
from people.test_lost_enrolments import delete_people
from people.test_planted_rows import plant_huge_numbers
from watchroom import Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.decisions import NAMESPACE, describe_decision, sign_draft
from watchroom.features.people.rows import Person
from watchroom.features.requests.rows import decide_all, dump_answer
from watchroom.features.reverts.planning import read_record
from watchroom.history.report import read_report
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.append import row_of
from watchroom.model import ANSWER, REVERT_WORK, Draft, Json, Write

PATH = "alice/1/1"


def record(**changed: Json) -> str:
    fields: dict[str, Json] = {
        "written": [],
        "conflicts": [],
        "could_not": [],
        "not_reverted": {},
        "agents": [],
        "until": 1,
        "items": [],
        **changed,
    }
    return json.dumps(fields)


def test_a_third_version_of_a_task_changes_nothing(team: Team) -> None:
    content = '{"requirement": "x", "workspacePath": ""}'
    team.workspace.journal.append([Write("human:eve", "submit_requirement", "task", TASK, content)])
    team.workspace.journal.append(
        [Write("alice", "end_task", "task", TASK, "done", expected=1, detail={"status": "done"})]
    )
    plant(
        *(team.root, "bob", "end_task", "task", TASK),
        content="",
        detail={"status": "failed"},
        version=3,
        base=2,
    )
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert team.workspace.tasks.find(TASK).status == "done"
    assert [each.status for each in model.tasks] == ["done"]


def test_a_revert_is_what_its_signed_version_says(team: Team) -> None:
    team.sign_as(DANA)
    ok(
        team.workspace.tools("alice"),
        "collab_write",
        filepath="a",
        content="1\n",
        message="m",
        expected_version=0,
    )
    from watchroom.features.reverts.rules import RevertSelection

    done = team.workspace.reverts.apply(
        CallContext("human:dana"), RevertSelection(agents=("alice",)), pause=False
    )
    before = read_record(team.workspace.journal, done.id)
    plant(
        *(team.root, "alice", REVERT_WORK, "revert", done.id),
        content=record(written=[["collab", "b", 2]]),
        version=3,
        base=2,
    )
    assert read_record(team.workspace.journal, done.id) == before


def test_a_report_lists_no_revert_that_nobody_signed(team: Team) -> None:
    plant(
        *(team.root, "human:dana", REVERT_WORK, "revert", "abcd1234"),
        content=record(),
        version=1,
        base=0,
    )
    report = read_report(team.workspace.journal, 0, team.workspace.journal.last_seq())
    assert report.reverts == ()


def test_a_report_lists_no_decision_where_enrolments_are_gone(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    with Workspace.open(team.root, create=False) as workspace:
        number = workspace.requests.ask(CallContext("alice"), PATH, REQUEST).seq
        plant(
            *(team.root, "human:eve", ANSWER, "request", PATH),
            content=dump_answer(decide_all(REQUEST, True)),
            detail={"request": number, "outcome": "approved"},
            version=2,
            base=1,
        )
        report = read_report(workspace.journal, 0, workspace.journal.last_seq())
        assert report.decisions == ()


def test_who_may_decide_for_some_days_decides_nothing_later(team: Team) -> None:
    """The person dates the statement and its row back."""
    journal, people = team.workspace.journal, team.workspace.people
    team.sign_as(DANA)
    expires = journal.now() + 1
    people.add("human:dana", Person("bot", "supervisor", (STRANGER.key.line,), expires=expires))
    team.sign_as(None)
    number = team.ask()
    newest = journal.row(number)
    content = dump_answer(decide_all(REQUEST, True))
    detail: dict[str, Json] = {"request": number, "outcome": "approved"}
    draft: Draft = Write("human:bot", ANSWER, "request", PATH, content, expected=1, detail=detail)
    statement = describe_decision(draft, people.current(), STRANGER.key, expires, people.evidence, newest)
    draft = sign_draft(draft, statement, STRANGER.sign(statement.encode(), NAMESPACE))
    row = row_of(draft, number + 1, expires)
    plant(
        *(team.root, row.actor, row.tool, row.zone, row.path),
        content=content,
        detail=row.detail_json,
        version=2,
        base=1,
        time=expires,
    )
    assert team.workspace.requests.ended(PATH, REQUEST) is None


def test_verify_names_a_row_whose_numbers_are_beyond_64_bits(team: Team) -> None:
    plant_huge_numbers(team, team.ask())
    assert any(problem.zone == "request" for problem in team.workspace.verify())


@pytest.mark.parametrize("seq", [0, -5])
def test_verify_names_a_row_without_a_number_of_its_own(team: Team, seq: int, tmp_path: Path) -> None:
    team.sign_as(EVE)
    plant(
        *(team.root, "human:eve", "collab_write", "collab", "a"),
        content="x\n",
        version=1,
        base=0,
        seq=seq,
    )
    assert team.workspace.journal.head("collab", "a") is None or team.workspace.verify() != []


@pytest.mark.parametrize(
    ("actor", "zone", "path", "version"),
    [
        ("human:dana", "private", "alice/a", None),
        ("alice", "private", "alice/a", None),
        ("alice", "collab", "a", 1),
        ("outside", "file", "t-1/a", 1),
    ],
)
def test_a_report_lists_no_settlement_that_is_none(
    team: Team, actor: str, zone: str, path: str, version: int | None
) -> None:
    content = None if version is None else "x\n"
    detail: dict[str, Json] = {"conflict": 1}
    columns = {"content": content, "detail": detail, "version": version}
    plant(team.root, actor, "dismiss_conflict", zone, path, **columns)  # type: ignore[arg-type]
    report = read_report(team.workspace.journal, 0, team.workspace.journal.last_seq())
    assert report.decisions == ()
