"""Versions that are planted beyond the next one: what comes before them holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from calls import ok
from people.conftest import DANA, EVE, Team
from people.effects import REQUEST, TASK
from people.planted import plant
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import decide_all
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json, Write

PATH = "alice/1/1"


def test_an_answer_after_a_gap_counts(team: Team) -> None:
    number = team.ask()
    plant(team.root, "bob", "withdraw_request", "request", PATH, content="", version=3, base=2)
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), number, decide_all(REQUEST, True))
    ended = team.workspace.requests.ended(PATH, REQUEST)
    assert ended is not None
    assert ended.row.actor == "human:eve"


def test_settings_before_a_gap_hold(team: Team) -> None:
    team.sign_as(DANA)
    team.workspace.settings.sign(CallContext("human:dana"))
    team.sign_as(None)
    file = team.root / ".watchroom/config.toml"
    file.write_text('allowed_hosts = ["*.example.org"]\n' + file.read_text())
    team.workspace.scan()
    assert list(team.workspace.config.allowed_hosts) == []
    head = team.workspace.journal.head("settings", "settings.toml")
    assert head is not None
    plant(
        *(team.root, "bob", "sign_settings", "settings", "settings.toml"),
        content="",
        version=(head.version or 0) + 2,
        base=head.version,
    )
    assert list(team.workspace.config.allowed_hosts) == []
    signed = team.workspace.settings.state().signed
    assert signed is not None
    assert signed.seq == head.seq


def test_agents_that_were_stopped_before_a_gap_are_stopped(team: Team) -> None:
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    ok(team.workspace.tools_for_human("eve"), "stop_agents", agents=["alice"])
    plant(team.root, "bob", "stop_agents", "workspace", STOPPED_PATH, content="", version=3, base=2)
    assert [*team.workspace.stops.stopped()] == ["alice"]


def test_a_task_that_ended_after_a_gap_has_ended_for_everybody(team: Team) -> None:
    content = '{"requirement": "x", "workspacePath": ""}'
    team.workspace.journal.append([Write("human:eve", "submit_requirement", "task", TASK, content)])
    plant(
        *(team.root, "bob", "end_task", "task", TASK),
        content="",
        detail={"status": "done"},
        version=3,
        base=2,
    )
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    ended = team.workspace.tasks.end_row(TASK)
    assert [each.status == "open" for each in model.tasks] == [ended is None]


def test_persons_after_a_gap_are_who_was_signed(team: Team) -> None:
    plant(team.root, "bob", "revoke_person", "person", "eve", version=3, base=2)
    team.sign_as(DANA)
    team.workspace.people.revoke("human:dana", "eve")
    assert team.workspace.people.current().find("human:eve") is None


def test_a_very_late_version_keeps_nobody_from_deciding(team: Team) -> None:
    version = 2**53 - 1
    number = team.ask()
    plant(team.root, "bob", "withdraw_request", "request", PATH, content="", version=version, base=2)
    head = team.workspace.journal.head("settings", "settings.toml")
    plant(
        *(team.root, "bob", "sign_settings", "settings", "settings.toml"),
        content="",
        version=version,
        base=0,
    )
    team.sign_as(DANA)
    team.workspace.settings.sign(CallContext("human:dana"))
    assert team.workspace.journal.head("settings", "settings.toml") != head
    team.workspace.requests.answer(CallContext("human:dana"), number, decide_all(REQUEST, True))
    assert team.workspace.requests.ended(PATH, REQUEST) is not None


def test_a_row_from_the_future_lets_no_question_expire(team: Team) -> None:
    expires = team.workspace.journal.now() + 600 * 10**9
    request = replace(REQUEST, expires=expires)
    number = team.workspace.requests.ask(CallContext("alice"), PATH, request).seq
    plant(team.root, "bob", "collab_list", "collab", "", time=2**62)
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), number, decide_all(REQUEST, True))
    ended = team.workspace.requests.ended(PATH, request)
    assert ended is not None


@pytest.mark.parametrize("by", ["", "human:eve"])
def test_a_withdrawn_request_can_expire(team: Team, by: str) -> None:
    """Whoever waits for it goes on, whatever ended it."""
    number = team.ask()
    detail: dict[str, Json] = {"request": number, "outcome": "withdrawn", **({"by": by} if by else {})}
    plant(
        *(team.root, "system", "withdraw_request", "request", PATH),
        content="",
        detail=detail,
        version=2,
        base=1,
    )
    assert team.workspace.requests.expire(PATH).answer is None
