"""What an agent's own login plants on a server past the tools."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
import pytest
from calls import ok
from people.conftest import EVE, Team, close
from psycopg import sql
from psycopg.types.json import Jsonb
from watchroom import Agent, Workspace
from watchroom.features.budgets.rules import BudgetScope
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import DECISION_TOOLS, effect_of
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.kernel.zones import ZONES
from watchroom.model import REVERT, Draft, Json, Note, Write, Zone

pytestmark = pytest.mark.postgres


class Server(NamedTuple):
    team: Team
    alice: str
    """The address of alice's own login."""

    def model(self) -> Model:
        journal = self.team.workspace.journal
        return read_model(journal, journal.last_seq())


@pytest.fixture
def server(new_database: Callable[[], str], tmp_path: Path) -> Iterator[Server]:
    address = new_database()
    agents = [Agent("alice"), Agent("bob")]
    with (
        Workspace.open(address, agents, checkout=tmp_path / "team") as workspace,
        closing(DatabaseMembers(address)) as members,
    ):
        close(workspace)
        yield Server(Team(workspace, tmp_path / "team"), members.add("alice", "agent"))


def append(address: str, content: str | None = None, **fields: Json) -> str:
    """Append a draft with the login of ``address`` by the server's function; return the outcome, or
    ``refused`` if the server makes no row."""
    draft: dict[str, Json] = {
        "w": False,
        "message": "",
        "base": None,
        "outcome": "ok",
        "error": "",
        "detail": "",
        "key": "",
        **fields,
    }
    if draft["w"]:
        draft |= {"outcome": None, "error": None}
    body = None if content is None else content.encode()
    with psycopg.connect(address, autocommit=True) as connection:
        try:
            row = connection.execute(
                "SELECT row_outcome FROM watchroom.append(%s, %s::jsonb, %s::bytea[])",
                (uuid.uuid4(), json.dumps([draft]), [body]),
            ).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            return "refused"
    assert row is not None
    return str(row[0])


PLANT_EACH: Final = """
DO $do$
DECLARE
    draft jsonb;
    body bytea;
BEGIN
    FOR draft IN SELECT jsonb_array_elements({drafts}) LOOP
        body := CASE WHEN (draft ->> 'w')::boolean THEN '{{}}'::bytea END;
        BEGIN
            PERFORM watchroom.append(gen_random_uuid(), jsonb_build_array(draft), ARRAY[body]);
        EXCEPTION WHEN OTHERS THEN
            -- The server refuses the row.
        END;
    END LOOP;
END $do$
"""


def plant_each(address: str, kinds: Iterable[dict[str, Json]]) -> None:
    """Append a note and a version of each kind with the login of ``address``, whether the server takes them
    or not.

    The server loops over the rows. A statement for each row would take four times as long.
    """
    with psycopg.connect(address, autocommit=True) as connection:
        for some in batched(kinds):
            drafts = [draft for kind in some for draft in drafts_of(kind)]
            connection.execute(sql.SQL(PLANT_EACH).format(drafts=sql.Literal(Jsonb(drafts))))


def batched(kinds: Iterable[dict[str, Json]]) -> Iterator[list[dict[str, Json]]]:
    remaining = iter(kinds)
    while some := [*islice(remaining, 100)]:
        yield some


def drafts_of(kind: dict[str, Json]) -> Iterator[dict[str, Json]]:
    common = {**kind, "message": "", "key": ""}
    yield {**common, "w": False, "base": None, "outcome": "ok", "error": ""}
    yield {**common, "w": True}


def test_an_escaped_name_settles_no_conflict_of_another(server: Server) -> None:
    alice, bob = server.team.workspace.tools("alice"), server.team.workspace.tools("bob")
    ok(alice, "collab_write", filepath="a", content="1\n", message="m", expected_version=0)
    call: dict[str, Json] = {"filepath": "a", "content": "2\n", "message": "m", "expected_version": 0}
    assert bob.dispatch_tool_call("collab_write", call)["error"] == "version_conflict"
    (conflict,) = server.model().conflicts
    append(
        *(server.alice, "3\n"),
        w=True,
        actor="alice",
        tool="collab_write",
        zone="collab",
        path="a",
        base=1,
        detail=f'{{"\\u0072esolves": [{conflict.id}]}}',
    )
    assert [each.id for each in server.model().conflicts] == [conflict.id]


def test_an_agents_login_suppresses_no_row_of_watchroom_by_its_key(server: Server) -> None:
    """The breaker's pause of bob has this key; alice's row takes it first."""
    key = "breaker bob failing 0"
    append(
        server.alice,
        actor="system",
        tool="budget_warning",
        zone="workspace",
        path="x",
        key=key,
        detail=json.dumps({"idempotency_key": key}),
    )
    bob = server.team.workspace.tools("bob")
    for _ in range(10):
        bob.dispatch_tool_call("collab_read", {"filepath": "missing"})
    from watchroom.features.policy.service import AgentBreaker

    breaker = AgentBreaker(server.team.workspace._store)
    for row in server.team.workspace.journal.rows(0):
        breaker.watch(row)
    paused = [row for row in server.team.workspace.journal.rows(0) if row.tool == "pause_agent"]
    assert [row.path for row in paused] == ["bob"]


def test_an_agents_login_takes_no_answer_about_a_budget_of_others_back(server: Server) -> None:
    from people.test_planted_budgets import answer
    from watchroom.features.budgets.rules import Budget

    team = server.team
    team.sign_as(EVE)
    team.workspace.budgets.set_budget(CallContext("human:eve"), "agent", "bob", "tokens", 10)
    team.sign_as(None)
    detail: dict[str, Json] = {"status": "running", "tokens": [12, 0], "step": 1}
    team.workspace.journal.append([Write("bob", "agent", "session", "bob/1", "{}", detail=detail)])
    asked = team.workspace.budgets.hold_call("bob", "bob/1")
    assert asked is not None
    answer(team, asked, "stop")
    assert team.workspace.budgets.find_stop("bob", "bob/1")
    append(
        server.alice,
        actor="system",
        tool="budget_reached",
        zone="workspace",
        path=Budget("agent", "bob", "tokens", 10).key,
        detail='{"request": 1}',
    )
    assert team.workspace.budgets.find_stop("bob", "bob/1")


def test_what_an_agents_login_gets_accepted_has_no_effect(server: Server) -> None:
    """Every zone, actor and tool: what is accepted changes nothing protected, but for its own requests."""
    from watchroom.features.people.rules import EFFECT_RULES

    tools = sorted(
        {tool for rule in EFFECT_RULES.values() for tool in rule.tools} | {"collab_write", "revoke_token"}
    )
    paths = {"request": ("alice/1/1", "bob/1/1"), "token": ("bob/f",), "person": ("mallory",)}
    people, counted = server.team.workspace.people, []
    detail = '{"agents": {}, "need": "denied", "row": 1, "actor": "bob"}'
    plant_each(
        server.alice,
        (
            {"zone": zone, "path": path, "actor": actor, "tool": tool, "base": -1, "detail": detail}
            for zone in ZONES
            for path in (*paths.get(zone, ()), "alice", "bob", "alice/1", "bob/1", "stopped", "id", "a")
            for actor in ("alice", "outside", "system")
            for tool in tools
        ),
    )
    for row in server.team.workspace.journal.rows(0, limit=100_000):
        effect = effect_of(row)
        if row.actor in ("alice", "system", "outside") and effect and people.counts(row):
            counted.append((effect, row.actor, row.tool, row.zone, row.path))
    own = {(effect, path) for effect, _, _, _, path in counted}
    assert own <= {
        ("ask", "alice/1/1"),
        ("ask", "alice/1"),
        ("withdraw", "alice/1/1"),
        ("withdraw", "alice/1"),
        ("identify", "id"),
        ("pause", "alice"),
    }


def test_an_agents_login_takes_no_edit_of_a_persons_back(server: Server) -> None:
    """The file is dana's, on her disk; alice writes a row of a task's file by a person's tool."""
    workspace = server.team.workspace
    ok(
        workspace.tools("alice"),
        "collab_write",
        filepath="a",
        content="1\n",
        message="m",
        expected_version=0,
    )
    (file,) = [each for each in Path(workspace.root).rglob("a") if each.is_file()]
    file.write_text("mine\n")
    workspace.scan()
    edit = next(row for row in workspace.journal.rows(0) if row.actor == "outside" and row.path == "a")
    workspace.scan()
    assert file.read_text() == "mine\n"
    said = append(
        *(server.alice, "x"),
        w=True,
        actor="outside",
        tool="revert_outside_edit",
        zone="file",
        path="t-1/x",
        base=0,
        detail=json.dumps({"conflict": edit.seq}),
    )
    workspace.scan()
    assert (said, file.read_text()) == ("refused", "mine\n")
    from watchroom.history.report import read_report

    report = read_report(workspace.journal, 0, workspace.journal.last_seq())
    assert report.decisions == ()


@pytest.mark.parametrize(
    ("kind", "actor", "zone", "path"),
    [
        ("note", "human:eve", "collab", "a"),
        ("note", "human:eve", "collab", "b"),
        ("note", "human:eve", "private", "alice/a"),
        ("note", "outside", "collab", "a"),
        ("note", "alice", "collab", "a"),
        ("write", "human:eve", "file", "t-1/x"),
        ("write", "outside", "file", "t-1/x"),
        ("write", "human:eve", "collab", "b"),
    ],
)
def test_no_row_but_a_signed_decision_reverts_an_edit(
    server: Server, kind: str, actor: str, zone: Zone, path: str
) -> None:
    """The owner's login writes past every rule of the server."""
    workspace = server.team.workspace
    first: dict[str, Json] = {"filepath": "a", "content": "1\n", "message": "m", "expected_version": 0}
    ok(workspace.tools("alice"), "collab_write", **first)
    file = server.team.root / "collaborative/current/a"
    file.write_text("mine\n")
    (edit,) = workspace.scan()
    detail: dict[str, Json] = {"conflict": edit.seq, "checkout": "elsewhere"}
    draft: Draft = Note(actor, REVERT, zone, path, detail=detail)
    if kind == "write":
        draft = Write(actor, REVERT, zone, path, "x", detail=detail)
    workspace.journal.append([draft])
    # The rows are read, and the files written, before the files are compared.
    assert workspace.scan() == []
    assert file.read_text() == "mine\n"


TOOLS: Final = sorted({*DECISION_TOOLS, "pause_agent", "cancel_agent", "stop_agents", "send_message"})


def test_an_agents_login_makes_no_row_that_is_a_forged_decision(server: Server) -> None:
    """Every zone, actor and tool of people; what the server accepts is no flawed decision."""
    people, journal = server.team.workspace.people, server.team.workspace.journal
    since, flawed = journal.last_seq(), []
    plant_each(
        server.alice,
        (
            {"zone": zone, "path": path, "actor": actor, "tool": tool, "base": 0, "detail": '{"conflict": 1}'}
            for zone in ZONES
            for path in ("alice", "alice/1", "alice/calls/1", "bob", "alice_to_bob/a", "t-1/a", "global", "a")
            for actor in ("alice", "outside", "system")
            for tool in TOOLS
        ),
    )
    made = journal.rows(since, limit=100_000)
    assert {row.outcome for row in made} >= {"ok", "denied"}
    flawed = [(row.actor, row.tool, row.zone, row.path) for row in made if people.find_flaw(row)]
    carried_out = {
        (row.actor, row.tool) for row in made if row.outcome == "ok" and row.tool in DECISION_TOOLS
    }
    assert (flawed, carried_out) == ([], set())


REPORTS: Final = {
    "own budget": ("budget_warning", "workspace", "agent alice cost", "budget_warning agent alice cost 5"),
    "own session's budget": ("budget_reached", "workspace", "session alice/1 steps", ""),
    "own task's budget": ("budget_warning", "workspace", "task t-1 cost", "budget_warning task t-1 cost 5"),
    "budget of the team": ("budget_warning", "workspace", "team cost", "budget_warning team cost 5"),
    "own pause": ("pause_agent", "agent", "alice", "breaker alice failing 0"),
}
FOREIGN_REPORTS: Final = {
    "another's budget": ("budget_warning", "workspace", "agent bob cost", "budget_warning agent bob cost 5"),
    "another's session": ("budget_reached", "workspace", "session bob/1 steps", ""),
    "another task": ("budget_reached", "workspace", "task t-2 cost", ""),
    "an agent whose id begins alike": ("budget_reached", "workspace", "agent alice2 cost", ""),
    "a key of another budget": (
        "budget_warning",
        "workspace",
        "team cost",
        "budget_warning agent bob cost 5",
    ),
    "a key of another tool": ("budget_reached", "workspace", "team cost", "budget_warning team cost 5"),
    "a key of another's pause": ("pause_agent", "agent", "alice", "breaker bob failing 0"),
    "a key of a checkout's note": ("lay_out", "collab", "a", "lost/1"),
    "a lost process that never was": ("process_lost", "workspace", "1", "lost/1"),
}


@pytest.mark.parametrize("case", [*REPORTS, *FOREIGN_REPORTS])
def test_an_agents_login_reports_as_watchroom_only_what_is_its_own(server: Server, case: str) -> None:
    spawned: dict[str, Json] = {"task": "t-1"}
    server.team.workspace.journal.append(
        [Write("human:eve", "spawn_agent", "agent", "alice", "", detail=spawned)]
    )
    tool, zone, path, key = (REPORTS | FOREIGN_REPORTS)[case]
    outcome = "failed" if tool in ("process_lost", "lay_out") else "ok"
    detail = json.dumps({"idempotency_key": key}) if key else ""
    said = append(
        server.alice,
        actor="system",
        tool=tool,
        zone=zone,
        path=path,
        key=key,
        outcome=outcome,
        detail=detail,
    )
    assert said == ("ok" if case in REPORTS else "refused")


def test_an_agents_login_is_held_by_its_budgets(server: Server, tmp_path: Path) -> None:
    team, task = server.team, Agent("alice", task="t-1")
    spawned: dict[str, Json] = {"task": "t-1"}
    team.workspace.journal.append([Write("human:eve", "spawn_agent", "agent", "alice", "", detail=spawned)])
    team.workspace.register([task])
    team.sign_as(EVE)
    budgets: list[tuple[BudgetScope, str]] = [("agent", "alice"), ("session", "alice/1"), ("task", "t-1")]
    for scope, name in (*budgets, ("team", "")):
        team.workspace.budgets.set_budget(CallContext("human:eve"), scope, name, "tokens", 10)
    team.sign_as(None)
    detail: dict[str, Json] = {"status": "running", "tokens": [12, 0], "step": 1}
    team.workspace.journal.append([Write("alice", "agent", "session", "alice/1", "{}", detail=detail)])
    with Workspace.open(server.alice, create=False, checkout=tmp_path / "hers") as workspace:
        asked = workspace.budgets.hold_call("alice", "alice/1")
        assert asked is not None
        said = [row for row in workspace.journal.rows(0) if row.tool.startswith("budget_")]
        assert [row.outcome for row in said] == ["ok"] * 5
        key = str(said[-1].path)
        assert workspace.budgets.find_open_request(key) == asked


@pytest.mark.parametrize("outcome", ["failed", "denied", "conflict"])
def test_an_agents_login_takes_no_key_with_a_row_that_does_nothing(server: Server, outcome: str) -> None:
    key = "breaker alice failing 0"
    said = append(
        server.alice,
        actor="system",
        tool="pause_agent",
        zone="agent",
        path="alice",
        key=key,
        outcome=outcome,
        detail=json.dumps({"idempotency_key": key}),
    )
    assert said == "refused"


def test_an_agents_login_buries_no_need_under_forged_ones(server: Server) -> None:
    server.team.ask()
    drafts = [
        {
            "w": False,
            "actor": "alice",
            "tool": "pause_agent",
            "zone": "agent",
            "path": f"x{number}",
            "message": "",
            "base": None,
            "outcome": "ok",
            "error": "",
            "detail": "",
            "key": "",
        }
        for number in range(300)
    ]
    with psycopg.connect(server.alice, autocommit=True) as connection:
        connection.execute(
            "SELECT row_outcome FROM watchroom.append(%s, %s::jsonb, %s::bytea[])",
            (uuid.uuid4(), json.dumps(drafts), [None] * len(drafts)),
        )
    kinds = [need.kind for need in server.model().needs]
    assert kinds.index("request") < 100
