"""What the server lets a member do, asked with its own credentials, by the program and by SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from uuid import uuid4

import psycopg
import pytest
from cli.running import misuse, printed, printed_json
from watchroom import Workspace
from watchroom.errors import JournalDenied, JournalError
from watchroom.kernel.journal import open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import Draft, Note, Write

pytestmark = pytest.mark.postgres
MINE = Write("alice", "t", "private", "alice/a.md", "mine")


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def members(url: str) -> Iterator[DatabaseMembers]:
    with closing(DatabaseMembers(url)) as members:
        yield members


@pytest.fixture
def alice(members: DatabaseMembers) -> str:
    """The address of an agent."""
    return members.add("alice", "agent")


def outcomes(address: str, *drafts: Draft) -> list[str]:
    with closing(open_journal(address)) as journal:
        return [f"{row.outcome} {row.error}".strip() for row, _ in journal.append(drafts)]


def test_an_agent_writes_what_is_its_own_and_nothing_else(alice: str) -> None:
    assert (
        outcomes(
            alice,
            MINE,
            Write("alice", "t", "collab", "plan.md", "x"),
            Write("alice", "t", "handoff", "alice_to_bob/a.md", "x"),
            Note("alice", "collab_read", "collab", "plan.md"),
        )
        == ["ok"] * 4
    )
    refused = "denied permission_denied"
    assert (
        outcomes(
            alice,
            Write("alice", "t", "private", "bob/a.md", "x"),
            Write("alice", "t", "private", "alicia/a.md", "x"),
            Write("alice", "t", "handoff", "bob_to_alice/a.md", "x"),
            Write("alice", "answer_request", "request", "bob/s/1", "{}"),
            Note("alice", "resolve_conflict", "collab", "plan.md"),
            Note("alice", "cancel_agent", "session", "bob/1"),
            Write("alice", "t", "config", "config.toml", "x"),
            Write("alice", "t", "token", "1", "x"),
        )
        == [refused] * 8
    )


@pytest.mark.parametrize("actor", ["bob", "human:dana", "system", "outside"])
def test_nobody_writes_in_another_s_name(alice: str, actor: str) -> None:
    with closing(open_journal(alice)) as journal:
        before = journal.last_seq()
        with pytest.raises(JournalDenied):
            journal.append([Write(actor, "t", "collab", "plan.md", "x")])
        assert journal.last_seq() == before


def test_an_agent_s_process_tells_what_it_has_to_in_the_system_s_name(alice: str) -> None:
    assert outcomes(
        alice,
        Note("system", "lay_out", "collab", "plan.md", "failed", "not_laid_out"),
        Note("system", "budget_reached", "workspace", "agent alice tokens"),
        Note("system", "pause_agent", "agent", "alice"),
        Write("system", "lease_expired", "lease", "global", None),
        Write("alice", "ask_person", "request", "alice/s/1", "{}", expected=0),
        Write("system", "withdraw_request", "request", "alice/s/1", "{}", expected=1),
        Note("outside", "outside_edit", "collab", "plan.md", "conflict", "outside_edit"),
    ) == ["failed not_laid_out"] + ["ok"] * 5 + ["conflict outside_edit"]
    for draft in (
        Note("system", "process_lost", "workspace", "lease", "failed", "not_seen_alive"),
        Note("system", "budget_reached", "workspace", "agent bob tokens"),
        Note("outside", "revert_outside_edit", "collab", "plan.md"),
        Note("system", "pause_agent", "agent", "bob"),
        Write("system", "withdraw_request", "request", "bob/s/1", "{}"),
        Write("outside", "outside_edit", "private", "bob/a.md", "x"),
    ):
        with pytest.raises(JournalDenied):
            outcomes(alice, draft)


def test_an_agent_reports_a_process_as_lost_only_when_its_lease_has_run_out(url: str, alice: str) -> None:
    def report(lease: str) -> Note:
        key = f"lost/{lease}"
        return Note("system", "process_lost", "workspace", lease, "failed", "not_seen_alive", key=key)

    with closing(open_journal(url)) as journal, closing(open_journal(alice)) as hers:
        live = journal.presence.hold()
        with psycopg.connect(url, autocommit=True) as connection:
            old = "now() - interval '1 h'"
            connection.execute(f"INSERT INTO watchroom.presences VALUES ('gone', 1, '', 0, '', 0, {old})")
        deadline = monotonic() + 30
        while {each.id: each.is_alive for each in hers.presence.all()} != {"gone": False, live: True}:
            # A server that has just started gives every lease some seconds.
            assert monotonic() < deadline
        with pytest.raises(JournalDenied):
            hers.append([report(live)])
        ((row, _),) = hers.append([report("gone")])
        hers.presence.forget("gone")
        # Who noticed it at the same time finds that row.
        ((again, _),) = hers.append([report("gone")])
        assert (row.outcome, again.seq) == ("failed", row.seq)


def test_a_refused_write_is_a_row_with_the_refused_text(alice: str) -> None:
    with closing(open_journal(alice)) as journal:
        ((row, _),) = journal.append([Write("alice", "t", "private", "bob/a.md", "not hers")])
        assert (row.outcome, journal.content(row.seq)) == ("denied", "not hers")
        assert journal.row(row.seq) == row
        assert journal.head("private", "bob/a.md") is None


def test_a_supervisor_answers_and_a_viewer_looks(members: DatabaseMembers) -> None:
    dana, eve = members.add("dana", "supervisor"), members.add("eve", "viewer")
    assert outcomes(dana, Write("human:dana", "answer_request", "request", "bob/s/1", "{}")) == ["ok"]
    assert outcomes(dana, Write("human:dana", "t", "private", "alice/a.md", "x")) == [
        "denied permission_denied"
    ]
    with closing(open_journal(dana)) as journal, pytest.raises(JournalDenied):
        journal.append([Write("human:eve", "answer_request", "request", "bob/s/1", "{}")])
    with closing(open_journal(eve)) as journal:
        assert [row.actor for row in journal.rows()] == ["human:dana", "human:dana"]
        with pytest.raises(JournalDenied, match="only look"):
            journal.append([Note("human:eve", "t", "collab", "a")])


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO watchroom.rows SELECT * FROM watchroom.rows LIMIT 1",
        "UPDATE watchroom.rows SET message = 'x'",
        "DELETE FROM watchroom.rows",
        "TRUNCATE watchroom.rows",
        "UPDATE watchroom.tip SET seq = 0",
        "DELETE FROM watchroom.heads",
        "DELETE FROM watchroom.contents",
        "UPDATE watchroom.members SET kind = 'supervisor'",
        "SELECT watchroom.admit(session_user, 'human:dana', 'supervisor')",
        "UPDATE watchroom.presences SET seen = clock_timestamp()",
        "SELECT * FROM watchroom.attempts",
        "CREATE TABLE watchroom.mine (x int)",
        "ALTER TABLE watchroom.rows DISABLE TRIGGER ALL",
        "SET ROLE watchroom",
        "SET SESSION AUTHORIZATION watchroom",
        "DROP SCHEMA watchroom CASCADE",
    ],
)
def test_sql_gives_an_agent_nothing_more(alice: str, statement: str) -> None:
    outcomes(alice, MINE)
    with (
        psycopg.connect(alice, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.encode())


def test_sql_calls_of_the_append_are_judged_alike(alice: str) -> None:
    draft = {
        "w": True,
        "actor": "alice",
        "tool": "t",
        "zone": "private",
        "path": "bob/a.md",
        "message": "",
        "base": -1,
        "detail": "",
        "key": "",
        "blockable": True,
        "above": [],
    }
    with psycopg.connect(alice, autocommit=True) as connection:
        found = connection.execute(
            "SELECT row_outcome FROM watchroom.append(%s, %s::jsonb, %b::bytea[])",
            (uuid4(), json.dumps([draft]), [b"x"]),
        ).fetchone()
    assert found == ("denied",)


def test_tokens_are_read_by_the_owner_alone(url: str, alice: str) -> None:
    assert outcomes(url, Write("human:dana", "t", "token", "1", "secret"), MINE) == ["ok", "ok"]
    with closing(open_journal(alice)) as journal:
        assert [row.zone for row in journal.rows()] == ["private"]
        assert [journal.content(seq) for seq in (1, 2)] == [None, "mine"]
        assert [*journal.heads("token")] == []


def test_a_lease_is_renewed_and_released_by_its_holder_alone(url: str, alice: str) -> None:
    with closing(open_journal(url)) as journal:
        lease = journal.presence.hold("go on")
        with psycopg.connect(alice, autocommit=True) as connection:
            connection.execute("SELECT watchroom.release_presence(%s)", (lease,))
            connection.execute("SELECT watchroom.renew_presence(%s, 0, '', 0, 'other')", (lease,))
        ((held),) = journal.presence.all()
        assert (held.id, held.is_alive, held.resume) == (lease, True, "go on")


def test_who_is_revoked_is_let_in_no_more(members: DatabaseMembers, alice: str) -> None:
    with closing(open_journal(alice)) as journal:
        journal.append([MINE])
        assert [(each.actor, each.kind, each.is_connected) for each in members.all()] == [
            ("alice", "agent", True)
        ]
        members.revoke("alice")
        with pytest.raises(JournalError):
            journal.append([MINE])
    with pytest.raises(JournalError):
        open_journal(alice)
    assert members.all() == []


def test_an_agent_s_tools_work_with_its_own_credentials(url: str, alice: str, tmp_path: Path) -> None:
    with Workspace.open(url, ["alice", "bob"], checkout=tmp_path / "owner") as workspace:
        workspace.tools("bob").dispatch_tool_call(
            "collab_write", {"filepath": "b.md", "content": "x", "message": "m"}
        )
    with Workspace.open(alice, create=False, checkout=tmp_path / "hers") as workspace:
        tools = workspace.tools("alice")
        assert tools.dispatch_tool_call("collab_read", {"filepath": "b.md"})["success"]
        written = {"filepath": "a.md", "content": "x", "message": "m"}
        assert tools.dispatch_tool_call("collab_write", written)["success"]
        assert tools.dispatch_tool_call("save_to_my_workspace", {"filename": "n.md", "content": "x"})[
            "success"
        ]
        refused = workspace.tools("bob").dispatch_tool_call("collab_write", written | {"filepath": "c.md"})
        assert refused["error"] == "journal_denied"


def test_members_are_let_in_and_out_on_the_command_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_journal(url)):
        pass
    added = printed_json(capsys, "member", "add", url, "dana", "--as", "supervisor", "--json")
    assert outcomes(added["address"], Note("human:dana", "t", "collab", "a")) == ["ok"]
    listed = printed_json(capsys, "member", "list", url, "--json")
    assert [(each["actor"], each["kind"]) for each in listed] == [("human:dana", "supervisor")]
    printed(capsys, "member", "revoke", url, "dana")
    assert printed_json(capsys, "member", "list", url, "--json") == []
    misuse(capsys, "member", "add", url, "eve")
