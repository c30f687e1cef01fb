"""Versions that say that they were refused: the table refuses them, unless a shell has it not check."""

from __future__ import annotations

import pytest
from people.conftest import DANA, STRANGER, Team, person
from people.effects import LAX, REQUEST, TASK
from people.planted import plant
from watchroom import Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import decide_all, dump_answer
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Write
from watchroom.validation import sha256

PATH = "alice/1/1"
REFUSED = ["denied", "failed", "conflict", "x"]


@pytest.mark.parametrize("outcome", REFUSED)
def test_an_answer_that_was_refused_approves_nothing(team: Team, outcome: str) -> None:
    number = team.ask()
    plant(
        *(team.root, "human:eve", ANSWER, "request", PATH),
        content=dump_answer(decide_all(REQUEST, True)),
        detail={"request": number, "outcome": "approved"},
        version=2,
        base=1,
        outcome=outcome,
    )
    assert team.workspace.requests.ended(PATH, REQUEST) is None


@pytest.mark.parametrize("outcome", REFUSED)
def test_settings_that_were_refused_do_not_hold(team: Team, outcome: str) -> None:
    team.sign_as(DANA)
    team.workspace.settings.sign(CallContext("human:dana"))
    version, _ = team.workspace.registry.settings()
    plant(
        *(team.root, "human:dana", "sign_settings", "settings", "settings.toml"),
        content=LAX,
        version=version + 1,
        base=version,
        outcome=outcome,
    )
    assert list(team.workspace.config.allowed_hosts) == []


@pytest.mark.parametrize("outcome", REFUSED)
def test_who_was_refused_is_not_enrolled(team: Team, outcome: str) -> None:
    plant(
        *(team.root, "human:dana", "add_person", "person", "mallory"),
        content=person("mallory", "owner", STRANGER).dump(),
        version=1,
        base=0,
        outcome=outcome,
    )
    assert team.workspace.people.current().find("human:mallory") is None
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert model.people.find("human:mallory") is None


@pytest.mark.parametrize("outcome", REFUSED)
def test_a_token_that_was_refused_lets_nobody_in(team: Team, outcome: str) -> None:
    secret = "s" * 40
    plant(
        *(team.root, "human:dana", "make_token", "token", "alice/ffffffffffff"),
        content=f'{{"sha256": "{sha256(secret.encode())}", "expires": null}}',
        version=1,
        base=0,
        outcome=outcome,
    )
    assert team.workspace.access.authenticate(f"wr1.alice.ffffffffffff.{secret}") is None


@pytest.mark.parametrize("outcome", REFUSED)
def test_a_release_that_was_refused_releases_nobody(team: Team, outcome: str) -> None:
    from calls import ok

    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    ok(team.workspace.tools_for_human("eve"), "stop_agents", agents=["alice"])
    plant(
        *(team.root, "human:eve", "release_agents", "workspace", STOPPED_PATH),
        content="",
        detail={"agents": {}},
        version=2,
        base=1,
        outcome=outcome,
    )
    assert [*team.workspace.stops.stopped()] == ["alice"]
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert [*model.stopped] == ["alice"]


@pytest.mark.parametrize("outcome", REFUSED)
def test_an_end_that_was_refused_is_no_task_done(team: Team, outcome: str) -> None:
    content = '{"requirement": "x", "workspacePath": ""}'
    team.workspace.journal.append([Write("human:eve", "submit_requirement", "task", TASK, content)])
    plant(
        *(team.root, "human:eve", "end_task", "task", TASK),
        content="",
        detail={"status": "done"},
        version=2,
        base=1,
        outcome=outcome,
    )
    assert team.workspace.tasks.find(TASK).status != "done"


def test_a_config_before_a_gap_holds(team: Team) -> None:
    with Workspace.open(team.root, create=False) as other:
        assert other.config.agents
        plant(team.root, "bob", "register", "config", "config.toml", content="[", version=9, base=8)
        assert other.config.agents


def test_a_token_without_a_checksum_lets_nobody_in(team: Team) -> None:
    """Its row says that there is no content, and has one."""
    secret = "s" * 40
    plant(
        *(team.root, "bob", "x", "token", "alice/ffffffffffff"),
        content=f'{{"sha256": "{sha256(secret.encode())}", "expires": null}}',
        version=1,
        base=0,
        sha256=None,
        size=None,
    )
    assert team.workspace.access.authenticate(f"wr1.alice.ffffffffffff.{secret}") is None
