"""What rows written with SQL do not change in a closed workspace, and whom they keep from nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from calls import ok
from people.conftest import DANA, EVE, STRANGER, Team, close, person
from people.effects import REQUEST
from people.planted import change, plant, plant_many
from watchroom import Agent, Workspace
from watchroom.errors import MayNotDecide
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.decisions import describe_decision
from watchroom.features.people.rows import Person
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.requests.rows import decide_all, dump_answer, dump_request
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, ASK, RESUME, STOP_AGENTS, Json, Row, Write

PATH = "alice/1/1"
HUGE = 10**30


def model(team: Team) -> Model:
    return read_model(team.workspace.journal, team.workspace.journal.last_seq())


def approve(team: Team, number: int, who: str = "human:eve") -> Row:
    return team.workspace.requests.answer(CallContext(who), number, decide_all(REQUEST, True))


def conflict_of_bob(team: Team) -> int:
    ok(
        team.workspace.tools("alice"),
        "collab_write",
        filepath="a",
        content="1\n",
        message="m",
        expected_version=0,
    )
    call: dict[str, Json] = {"filepath": "a", "content": "2\n", "message": "m", "expected_version": 0}
    assert team.workspace.tools("bob").dispatch_tool_call("collab_write", call)["error"] == "version_conflict"
    (conflict,) = model(team).conflicts
    return conflict.id


def test_an_agent_settles_no_conflict_of_another_by_an_escaped_name(team: Team) -> None:
    number = conflict_of_bob(team)
    detail = f'{{"\\u0072esolves": [{number}]}}'
    plant(team.root, "alice", "collab_write", "collab", "a", content="3\n", detail=detail, version=2, base=1)
    assert [each.id for each in model(team).conflicts] == [number]
    team.sign_as(EVE)
    team.workspace.conflicts.dismiss(CallContext("human:eve"), number, "no")


def plant_huge_numbers(team: Team, number: int) -> None:
    """Plant an answer of eve's to the request ``number`` that is about a row of more than 64 bits."""
    journal, people = team.workspace.journal, team.workspace.people
    newest = journal.row(journal.last_seq())
    content = dump_answer(decide_all(REQUEST, True))
    detail: dict[str, Json] = {"request": number, "outcome": "approved", "resolves": [HUGE]}
    draft = Write("human:eve", ANSWER, "request", PATH, content, expected=1, detail=detail)

    class Nothing:
        def row(self, seq: int) -> Row | None:
            return journal.row(seq) if seq < 2**63 else None

        def content(self, seq: int) -> str | None:
            return None

        def is_repeated(self, row: Row) -> bool:
            return False

    statement = describe_decision(draft, people.current(), EVE.key, 1, Nothing(), newest)
    signed = {**detail, "signed": statement, "signature": "none"}
    plant(team.root, "human:eve", ANSWER, "request", PATH, content=content, detail=signed, version=2, base=1)


def test_numbers_beyond_64_bits_keep_nobody_from_answering(team: Team) -> None:
    number = team.ask()
    plant_huge_numbers(team, number)
    team.sign_as(EVE)
    approve(team, number)
    ended = team.workspace.requests.ended(PATH, REQUEST)
    assert ended is not None
    assert ended.row.version == 3
    assert {need.kind for need in model(team).needs} == {"forged"}


def stopped_agents(team: Team, agents: dict[str, Json]) -> None:
    plant(
        *(team.root, "human:eve", STOP_AGENTS, "workspace", STOPPED_PATH),
        content="",
        detail={"agents": agents},
        version=1,
        base=0,
    )


def test_stopping_an_agent_without_a_session_keeps_nobody_from_releasing(team: Team) -> None:
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    # bob is registered, and has no session.
    stopped_agents(team, {"bob": 1})
    ok(team.workspace.tools_for_human("eve"), "stop_agents", agents=["alice"])
    team.sign_as(EVE)
    ok(team.workspace.tools_for_human("eve"), "release_agents")
    assert not team.workspace.stops.stopped()
    assert not model(team).stopped


@pytest.mark.parametrize("told", [HUGE, 10**9])
def test_a_stopped_agent_can_be_resumed_whatever_row_told_it(team: Team, told: int) -> None:
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    stopped_agents(team, {"alice": told})
    team.sign_as(EVE)
    ok(team.workspace.tools_for_human("eve"), "resume_agent", agent_id="alice")
    assert not model(team).stopped
    assert not team.workspace.stops.stopped()


@pytest.mark.parametrize("actor", ["bob", "outside"])
def test_who_may_not_cancel_a_session_keeps_nobody_from_answering(team: Team, actor: str) -> None:
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    number = team.ask()
    plant(team.root, actor, "cancel_agent", "session", "alice")
    team.sign_as(EVE)
    approve(team, number)


def planted_request(team: Team, **changed: object) -> int:
    """Plant alice's next request with what it asks, and other columns; return its number."""
    columns: dict[str, object] = {
        "content": dump_request(REQUEST),
        "detail": {"kind": "approve", "tools": ["run_command"], "subjects": ["make"]},
        "message": "run_command make",
        "version": 1,
        "base": 0,
        **changed,
    }
    return plant(team.root, "alice", ASK, "request", PATH, **columns)  # type: ignore[arg-type]


def test_the_limits_of_a_person_hold_for_what_a_request_asks(team: Team) -> None:
    team.sign_as(DANA)
    limited = Person("bot", "supervisor", (STRANGER.key.line,), tools=("collab_*",))
    team.workspace.people.add("human:dana", limited)
    number = planted_request(team, detail={"kind": "approve", "tools": ["collab_write"], "subjects": ["a"]})
    team.sign_as(STRANGER)
    with pytest.raises(MayNotDecide):
        approve(team, number, "human:bot")
    assert team.workspace.requests.ended(PATH, REQUEST) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"message": "collab_read notes.md"},
        {"detail": {"kind": "approve", "tools": ["collab_read"], "subjects": ["notes.md"]}},
    ],
)
def test_a_request_is_taken_only_if_people_see_what_it_asks(team: Team, changed: dict[str, object]) -> None:
    from watchroom.errors import RequestTaken

    planted_request(team, **changed)
    with pytest.raises(RequestTaken):
        team.workspace.requests.ask(CallContext("alice"), PATH, REQUEST)


def test_a_request_of_ones_own_is_found_again_with_what_the_journal_adds_to_it(team: Team) -> None:
    detail: dict[str, Json] = {
        "kind": "approve",
        "tools": ["run_command"],
        "subjects": ["make"],
        "call": "c-7",
    }
    number = planted_request(team, detail=detail)
    assert team.workspace.requests.ask(CallContext("alice"), PATH, REQUEST).seq == number


@pytest.mark.parametrize(
    "changed", [{"detail": {"kind": "x"}}, {"detail": "{"}], ids=["unknown kind", "no json"]
)
def test_a_request_that_the_dashboard_cannot_show_is_not_taken(
    team: Team, changed: dict[str, object]
) -> None:
    from watchroom.errors import RequestTaken

    planted_request(team, **changed)
    try:
        team.workspace.requests.ask(CallContext("alice"), PATH, REQUEST)
    except RequestTaken:
        return
    assert model(team).requests, "alice waits, and nobody sees it"


def test_a_withdrawal_ends_a_request_for_what_acts_and_what_is_shown_alike(team: Team) -> None:
    number = team.ask()
    plant(
        *(team.root, "system", "withdraw_request", "request", PATH),
        content="",
        detail={"request": number, "outcome": "x"},
        version=2,
        base=1,
    )
    has_ended = team.workspace.requests.ended(PATH, REQUEST) is not None
    assert has_ended == (not model(team).requests)


@pytest.mark.parametrize("planted", [None, "", "x" * 50_000])
def test_no_planted_id_keeps_a_workspace_from_being_closed(tmp_path: Path, planted: str | None) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice"), Agent("bob")]) as workspace:
        plant(tmp_path / "team", "alice", "identify", "workspace", "id", content=planted, version=1, base=0)
        close(workspace)
        assert workspace.people.current().is_closed


def test_a_budget_that_nobody_set_takes_no_need_away(team: Team) -> None:
    from watchroom.features.budgets.rules import Budget
    from watchroom.model import BUDGET_WARNING, SYSTEM, Note

    key = Budget("agent", "alice", "tokens", 10).key
    detail: dict[str, Json] = {"scope": "agent", "name": "alice", "measure": "tokens"}
    team.workspace.journal.append([Note(SYSTEM, BUDGET_WARNING, "workspace", key, detail=detail)])
    assert [need.kind for need in model(team).needs] == ["budget"]
    head = team.workspace.journal.head("config", "config.toml")
    assert head is not None
    plant(
        *(team.root, "alice", "set_budget", "config", "config.toml"),
        content=team.workspace.journal.content(head.seq),
        detail=detail,
        version=(head.version or 0) + 1,
        base=head.version,
    )
    assert [need.kind for need in model(team).needs] == ["forged", "budget"]


@pytest.mark.parametrize("seq", [0, -5])
def test_a_row_without_a_number_of_its_own_keeps_nobody_from_answering(team: Team, seq: int) -> None:
    number = team.ask()
    plant(
        *(team.root, "human:eve", ANSWER, "request", PATH),
        content=dump_answer(decide_all(REQUEST, True)),
        detail={"request": number, "outcome": "approved"},
        version=2,
        base=1,
        seq=seq,
    )
    team.sign_as(EVE)
    approve(team, number)


def signed_settings(team: Team, text: str) -> Row:
    team.sign_as(DANA)
    version, _ = team.workspace.registry.settings()
    row = team.workspace._store.write(
        Write("human:dana", "sign_settings", "settings", "settings.toml", text, expected=version)
    ).row
    team.sign_as(None)
    return row


def test_settings_hold_only_with_the_content_that_was_signed(team: Team) -> None:
    row = signed_settings(team, 'allowed_hosts = ["a.example.org"]\n')
    change(
        *(team.root, "UPDATE rows SET content = ? WHERE seq = ?"),
        *('allowed_hosts = ["*.example.org"]\n', row.seq),
    )
    with Workspace.open(team.root, create=False) as other:
        assert list(other.config.allowed_hosts) != ["*.example.org"]


def test_damaged_settings_do_not_hand_the_workspace_to_the_file(team: Team) -> None:
    row = signed_settings(team, "")
    file = team.root / ".watchroom/config.toml"
    file.write_text('allowed_hosts = ["*.example.org"]\n' + file.read_text())
    team.workspace.scan()
    assert list(team.workspace.config.allowed_hosts) == []
    change(team.root, "UPDATE rows SET content = 'damaged = [' WHERE seq = ?", row.seq)
    with Workspace.open(team.root, create=False) as other:
        assert list(other.config.allowed_hosts) == []


def test_a_person_has_only_the_role_and_key_that_were_signed(team: Team) -> None:
    enrolled = team.workspace.journal.head("person", "viktor")
    assert enrolled is not None
    change(
        *(team.root, "UPDATE rows SET content = ? WHERE seq = ?"),
        *(person("viktor", "owner", STRANGER).dump(), enrolled.seq),
    )
    number = team.ask()
    with Workspace.open(team.root, create=False) as other:
        viktor = other.people.current().find("human:viktor")
        assert viktor is None or viktor.role == "viewer"
        other.signing.signer = STRANGER
        with pytest.raises(MayNotDecide):
            other.requests.answer(CallContext("human:viktor"), number, decide_all(REQUEST, True))


def test_a_planted_revert_is_not_finished(team: Team) -> None:
    record: dict[str, Json] = {
        "written": [],
        "conflicts": [],
        "could_not": [],
        "not_reverted": {},
        "agents": [],
        "until": 1,
        "items": [],
    }
    plant(
        *(team.root, "alice", "revert_work", "revert", "abcd1234"),
        content=json.dumps(record),
        version=1,
        base=0,
    )
    team.workspace.reverts.finish_all()
    assert team.workspace.journal.version("revert", "abcd1234", 2) is None


def test_a_forged_resume_as_watchroom_is_a_need(team: Team) -> None:
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    plant(team.root, "system", RESUME, "session", "alice")
    assert [need.kind for need in model(team).needs] == ["forged"]


def test_a_forged_ending_keeps_no_request_from_being_reverted(team: Team) -> None:
    from watchroom.features.reverts.rules import RevertSelection

    number = team.ask()
    plant(
        *(team.root, "bob", ANSWER, "request", PATH),
        content=dump_answer(decide_all(REQUEST, True)),
        detail={"request": number, "outcome": "approved"},
        version=2,
        base=1,
    )
    plan = team.workspace.reverts.plan(RevertSelection(agents=("alice",)))
    (item,) = [each for each in plan.items if each.zone == "request"]
    assert item.plan.kind == "clean"


def test_damaging_the_enrolments_does_not_open_the_workspace(team: Team) -> None:
    enrolled = team.workspace.journal.head("person", "dana")
    assert enrolled is not None
    change(team.root, "UPDATE rows SET content = '{}' WHERE seq = ?", enrolled.seq)
    with Workspace.open(team.root, create=False) as other:
        assert other.people.current().is_closed


def test_a_request_that_has_expired_already_is_not_taken(team: Team) -> None:
    """People could not answer it, and alice would wait for ever."""
    from watchroom.errors import RequestTaken

    number = planted_request(team, content=dump_request(replace(REQUEST, expires=1)))
    try:
        assert team.workspace.requests.ask(CallContext("alice"), PATH, REQUEST).seq == number
    except RequestTaken:
        return
    team.sign_as(EVE)
    approve(team, number)


def test_a_long_message_keeps_nobody_from_deciding(team: Team) -> None:
    number = team.ask()
    team.sign_as(EVE)
    text = "x" * 45_000
    team.workspace.requests.answer(CallContext("human:eve"), number, decide_all(REQUEST, True), text)


def test_forged_rows_do_not_bury_what_needs_a_person(team: Team) -> None:
    team.ask()
    plant_many(
        team.root,
        [
            {
                "actor": "bob",
                "tool": ANSWER,
                "zone": "request",
                "path": f"alice/1/x{number}",
                "version": 1,
                "content": "{}",
            }
            for number in range(2_000)
        ],
    )
    kinds = [need.kind for need in model(team).needs]
    assert "forged" in kinds
    assert kinds.index("request") < 100
