"""Rows planted in their thousands, which each call would read again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from people.conftest import EVE, Team
from people.effects import REQUEST
from people.planted import plant_many
from watchroom.features.people.decisions import describe_decision
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import decide_all, dump_answer
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Json, Write

PATH = "alice/1/1"
MANY = 20_000
SECONDS = 2.0
"""By far enough for any single call."""


def seconds(call: Callable[[], object]) -> float:
    """The CPU time of a call, because its duration depends on what else the machine does."""
    began = time.process_time()
    call()
    return time.process_time() - began


def row(
    actor: str, tool: str, zone: str, path: str, version: int | None, **columns: object
) -> dict[str, object]:
    return {"actor": actor, "tool": tool, "zone": zone, "path": path, "version": version, **columns}


def test_versions_of_a_request_keep_no_answer_from_being_found(team: Team) -> None:
    team.ask()
    plant_many(
        team.root, [row("bob", "withdraw_request", "request", PATH, n, content="") for n in range(2, MANY)]
    )
    assert seconds(lambda: team.workspace.requests.ended(PATH, REQUEST)) < SECONDS


def test_unsigned_statements_keep_no_answer_from_being_found(team: Team) -> None:
    """Each has the form of a signed one, and all but the signature is right."""
    number = team.ask()
    journal, people = team.workspace.journal, team.workspace.people
    newest = journal.row(journal.last_seq())
    content = dump_answer(decide_all(REQUEST, True))
    detail: dict[str, Json] = {"request": number, "outcome": "approved"}
    planted = []
    for version in range(2, 1_500):
        draft = Write("human:eve", ANSWER, "request", PATH, content, expected=version - 1, detail=detail)
        statement = describe_decision(draft, people.current(), EVE.key, 1, people.evidence, newest)
        text = json.dumps({**detail, "signed": statement, "signature": "none"})
        planted.append(
            row("human:eve", ANSWER, "request", PATH, version, content=content, detail=text, base=version - 1)
        )
    plant_many(team.root, planted)
    assert seconds(lambda: team.workspace.requests.ended(PATH, REQUEST)) < SECONDS


def test_rows_that_a_decision_is_about_are_not_read_before_its_signature(team: Team) -> None:
    number = team.ask()
    journal, people = team.workspace.journal, team.workspace.people
    newest = journal.row(journal.last_seq())
    content = dump_answer(decide_all(REQUEST, True))
    many: list[Json] = [1] * 400
    detail: dict[str, Json] = {"request": number, "outcome": "approved", "resolves": many}
    planted = []
    for version in range(2, 200):
        draft = Write("human:eve", ANSWER, "request", PATH, content, expected=version - 1, detail=detail)
        statement = describe_decision(draft, people.current(), EVE.key, 1, people.evidence, newest)
        text = json.dumps({**detail, "signed": statement, "signature": "none"})
        planted.append(
            row("human:eve", ANSWER, "request", PATH, version, content=content, detail=text, base=version - 1)
        )
    plant_many(team.root, planted)
    assert seconds(lambda: team.workspace.requests.ended(PATH, REQUEST)) < SECONDS


def test_persons_whom_nobody_enrolled_slow_no_call_down(team: Team) -> None:
    number = team.ask()
    asked = team.workspace.journal.row(number)
    assert asked is not None
    plant_many(
        team.root,
        [row("bob", "add_person", "person", f"p{n}", 1, content="{}", base=0) for n in range(MANY)],
    )
    people = team.workspace.people
    assert seconds(people.current) < 2 * SECONDS
    # Ten calls: known rows are not read again.
    assert seconds(lambda: [people.find_flaw(asked) for _ in range(10)]) < SECONDS / 4


def test_versions_of_the_stopped_agents_slow_no_call_down(team: Team) -> None:
    plant_many(
        team.root,
        [row("bob", "stop_agents", "workspace", STOPPED_PATH, n, content="") for n in range(1, MANY)],
    )
    assert seconds(team.workspace.stops.stopped) < SECONDS


def test_versions_of_the_settings_slow_no_call_down(team: Team) -> None:
    plant_many(
        team.root,
        [row("bob", "sign_settings", "settings", "settings.toml", n, content="") for n in range(1, MANY)],
    )
    assert seconds(lambda: team.workspace.config) < SECONDS
    assert seconds(lambda: [team.workspace.config for _ in range(10)]) < SECONDS / 4


@pytest.mark.parametrize("tool", ["make_token"])
def test_rows_without_a_leaf_keep_nobody_from_deciding(team: Team, tool: str) -> None:
    number = team.ask()
    plant_many(
        team.root, [row("bob", tool, "token", f"bob/{n}", 1, content="{}", base=0) for n in range(MANY)]
    )
    team.sign_as(EVE)
    answer = decide_all(REQUEST, True)
    assert seconds(lambda: team.workspace.requests.answer(CallContext("human:eve"), number, answer)) < SECONDS
