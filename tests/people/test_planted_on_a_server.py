"""What an agent's own login plants on a server past the tools."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from calls import ok
from people.conftest import EVE, Team, close
from watchroom import Agent, Workspace
from watchroom.journal.postgres.members import Members
from watchroom.model import Json, Write
from watchroom.projections import Model, read_model
from watchroom.rules.effects import effect_of

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
        closing(Members(address)) as members,
    ):
        close(workspace)
        yield Server(Team(workspace, tmp_path / "team"), members.add("alice", "agent"))


def append(address: str, content: str | None = None, **fields: Json) -> str:
    """Append a draft with the login of ``address`` by the server's function; return the outcome."""
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
        row = connection.execute(
            "SELECT row_outcome FROM watchroom.append(%s, %s::jsonb, %s::bytea[])",
            (uuid.uuid4(), json.dumps([draft]), [body]),
        ).fetchone()
    assert row is not None
    return str(row[0])


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
    from watchroom.zones.breaking import AgentBreaker

    breaker = AgentBreaker(server.team.workspace._store)
    for row in server.team.workspace.journal.rows(0):
        breaker.watch(row)
    paused = [row for row in server.team.workspace.journal.rows(0) if row.tool == "pause_agent"]
    assert [row.path for row in paused] == ["bob"]


def test_an_agents_login_takes_no_answer_about_a_budget_of_others_back(server: Server) -> None:
    from people.test_planted_budgets import answer
    from watchroom.rules.budgets import Budget

    team = server.team
    team.sign_as(EVE)
    team.workspace.budgets.set_budget("human:eve", "agent", "bob", "tokens", 10)
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
    from watchroom.model import ZONES
    from watchroom.rules.effects import EFFECT_RULES

    tools = sorted(
        {tool for rule in EFFECT_RULES.values() for tool in rule.tools} | {"collab_write", "revoke_token"}
    )
    paths = {"request": ("alice/1/1", "bob/1/1"), "token": ("bob/f",), "person": ("mallory",)}
    people, counted = server.team.workspace.people, []
    with psycopg.connect(server.alice, autocommit=True) as connection:
        for zone in ZONES:
            for path in (*paths.get(zone, ()), "alice", "bob", "alice/1", "bob/1", "stopped", "id", "a"):
                for actor in ("alice", "outside", "system"):
                    for tool in tools:
                        for is_write in (False, True):
                            draft = {
                                "w": is_write,
                                "actor": actor,
                                "tool": tool,
                                "zone": zone,
                                "path": path,
                                "message": "",
                                "base": -1 if is_write else None,
                                "key": "",
                                "detail": '{"agents": {}, "need": "denied", "row": 1, "actor": "bob"}',
                                **({} if is_write else {"outcome": "ok", "error": ""}),
                            }
                            try:
                                connection.execute(
                                    "SELECT row_outcome FROM watchroom.append(%s, %s::jsonb, %s::bytea[])",
                                    (uuid.uuid4(), json.dumps([draft]), [b"{}" if is_write else None]),
                                )
                            except psycopg.Error:
                                continue
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
    assert (said, file.read_text()) in {("denied", "mine\n"), ("ok", "mine\n")}
    from watchroom.queries.report import read_report

    report = read_report(workspace.journal, 0, workspace.journal.last_seq())
    assert report.decisions == ()


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
