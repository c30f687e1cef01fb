"""Nobody holds up others on a server for long: open transactions, locks, connections, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from journal.server import Server
from psycopg import sql
from watchroom import Workspace
from watchroom.errors import DraftRefused, JournalDenied, JournalError, JournalHeld, WorkspaceLocked
from watchroom.kernel.journal import open_journal
from watchroom.kernel.journal.postgres import PostgresJournal
from watchroom.kernel.journal.postgres.locks import _number
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.kernel.journal.postgres.schema import steps
from watchroom.model import Note, Write

pytestmark = [pytest.mark.postgres, pytest.mark.slow(10)]
BOUND: Final = 7.0
"""Seconds: docs/many-machines.md promises 6 on an idle machine for a session that stays busy."""
DRAFT: Final = {
    "w": False,
    "actor": "alice",
    "tool": "collab_read",
    "zone": "collab",
    "path": "a.md",
    "message": "",
    "base": None,
    "outcome": "ok",
    "error": "",
    "detail": "",
    "key": "",
}
Session = psycopg.Connection[tuple[Any, ...]]


def append(connection: Session) -> None:
    connection.execute(
        "SELECT * FROM watchroom.append(%s, %s::jsonb, %b::bytea[])", (uuid4(), json.dumps([DRAFT]), [None])
    )


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


@pytest.fixture
def dana(members: DatabaseMembers) -> str:
    """The address of a supervisor."""
    return members.add("dana", "supervisor")


def test_an_open_transaction_of_an_agent_holds_up_a_stop_for_seconds_only(alice: str, dana: str) -> None:
    with closing(psycopg.connect(alice)) as held, closing(open_journal(dana)) as journal:
        append(held)
        begun = monotonic()
        ((row, _),) = journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        took = monotonic() - begun
        assert row.outcome == "ok"
        assert took < BOUND
        assert [each.actor for each in journal.rows()] == ["human:dana"], "the refused row was not appended"
        with pytest.raises(psycopg.OperationalError):
            held.execute("SELECT 1")


def test_a_session_that_keeps_busy_while_it_holds_the_newest_row_is_ended(alice: str, dana: str) -> None:
    busy = psycopg.connect(alice)
    ended: list[psycopg.Error] = []

    def keep_busy() -> None:
        try:
            append(busy)
            busy.execute("SELECT pg_sleep(600)")
        except psycopg.Error as error:
            ended.append(error)

    thread = Thread(target=keep_busy)
    with closing(busy), closing(open_journal(dana)) as journal:
        thread.start()
        until = monotonic() + 20
        while busy.info.transaction_status != psycopg.pq.TransactionStatus.ACTIVE or not holds(dana):
            assert monotonic() < until
            sleep(0.01)
        begun = monotonic()
        journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        assert monotonic() - begun < BOUND
        thread.join(20)
        assert len(ended) == 1


def holds(address: str) -> bool:
    """Whether another session has taken the newest row."""
    with psycopg.connect(address) as connection:
        found = connection.execute(
            "SELECT FROM pg_locks WHERE relation = 'watchroom.tip'::regclass"
            " AND mode IN ('RowShareLock', 'RowExclusiveLock')"
        )
        return found.fetchone() is not None


def test_many_sessions_of_one_agent_in_line_hold_up_a_stop_no_longer(alice: str, dana: str) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(psycopg.connect(alice)) for _ in range(12)]
        append(sessions[0])
        threads = [Thread(target=append_and_stay, args=(each,)) for each in sessions[1:]]
        for thread in threads:
            thread.start()
        with closing(open_journal(dana)) as journal:
            begun = monotonic()
            journal.append([Note("human:dana", "pause_agent", "session", "alice")])
            assert monotonic() - begun < BOUND
        for each in sessions:
            each.close()
        for thread in threads:
            thread.join()


def append_and_stay(connection: Session) -> None:
    try:
        append(connection)
    except psycopg.Error:
        connection.close()


def test_sessions_of_one_agent_that_take_turns_hold_up_a_stop_no_longer(alice: str, dana: str) -> None:
    """None of them holds the newest row for as long as the time between two looks."""
    is_over = Event()

    def hold_for_a_moment() -> None:
        while not is_over.is_set():
            try:
                with psycopg.connect(alice) as connection:
                    append(connection)
                    is_over.wait(0.7)
            except psycopg.Error:
                # Ended by who waits. It comes again.
                is_over.wait(0.05)

    threads = [Thread(target=hold_for_a_moment) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        until = monotonic() + 20
        while not holds(dana):
            assert monotonic() < until
        with closing(open_journal(dana)) as journal:
            begun = monotonic()
            journal.append([Note("human:dana", "pause_agent", "session", "alice")])
            assert monotonic() - begun < BOUND
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_a_session_that_holds_the_queue_for_the_newest_row_is_ended(alice: str, dana: str) -> None:
    with (
        psycopg.connect(alice, autocommit=True) as held,
        closing(open_journal(dana)) as journal,
    ):
        held.execute("SELECT pg_advisory_lock('watchroom.tip'::regclass::oid::integer, 0)")
        begun = monotonic()
        journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        assert monotonic() - begun < BOUND
        with pytest.raises(psycopg.OperationalError):
            held.execute("SELECT 1")


def test_a_session_of_the_owner_is_not_ended_but_named(url: str, dana: str) -> None:
    with closing(psycopg.connect(url)) as held, closing(open_journal(dana)) as journal:
        held.execute("SELECT FROM watchroom.tip FOR UPDATE")
        with pytest.raises(JournalHeld) as caught:
            journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        assert caught.value.values["holder"] == "the owner"
        assert "the owner" in caught.value.message()
        assert "journal.db" not in str(caught.value)
        held.execute("SELECT 1")


def test_who_holds_the_lock_of_a_section_is_named(alice: str, dana: str) -> None:
    with closing(psycopg.connect(alice)) as held, closing(open_journal(dana)) as journal:
        held.execute("SELECT pg_advisory_xact_lock(%s)", (_number("exclusive", "lease/global"),))
        with pytest.raises(WorkspaceLocked) as caught, journal.exclusive("lease/global"):
            pass
        assert caught.value.values["holder"] == "alice"


def test_stopping_the_team_does_not_wait_for_an_open_transaction(
    url: str, alice: str, dana: str, tmp_path: Any
) -> None:
    with Workspace.open(url, ["alice"], checkout=tmp_path / "owner") as workspace:
        workspace.journal.append([Write("alice", "begin_session", "session", "alice/s1", "{}", expected=0)])
    with (
        Workspace.open(dana, create=False, checkout=tmp_path / "hers") as workspace,
        closing(psycopg.connect(alice)) as held,
    ):
        append(held)
        begun = monotonic()
        told = workspace.tools_for_human("dana").dispatch_tool_call("stop_agents", {"agents": ["alice"]})
        assert told["success"]
        assert monotonic() - begun < BOUND


def test_nobody_keeps_another_s_lease_from_being_renewed(alice: str, dana: str) -> None:
    with closing(PostgresJournal(dana)) as journal, psycopg.connect(alice) as held:
        lease = journal.presence.hold()
        held.execute("SELECT watchroom.renew_presence(%s, 1, 'm', 1, '')", (lease,))
        held.execute("SELECT watchroom.forget_presence(%s, interval '0', interval '0')", (lease,))
        with psycopg.connect(dana, autocommit=True, options="-c lock_timeout=2s") as renewing:
            renewing.execute("SELECT watchroom.renew_presence(%s, 2, 'm', 1, '')", (lease,))


def test_a_login_has_a_bounded_number_of_leases(alice: str) -> None:
    with psycopg.connect(alice, autocommit=True) as connection:
        renew = "SELECT watchroom.renew_presence(%s, 1, 'm', 1, '')"
        for number in range(200):
            connection.execute(renew, (f"l{number}",))
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(renew, ("one-more",))
        connection.execute("SELECT watchroom.release_presence('l0')")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(renew, ("a; b",))


def test_a_login_has_limits_of_its_own(alice: str, dana: str) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(psycopg.connect(alice))
        settings = [
            first.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone()
            for name in ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
        ]
        assert settings == [("5min",), ("5min",), ("10s",)]
        for _ in range(29):
            stack.enter_context(psycopg.connect(alice))
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(alice)
        with closing(open_journal(dana)) as journal:
            journal.append([Note("human:dana", "pause_agent", "session", "alice")])


def test_an_owner_who_is_no_superuser_ends_sessions_too(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        database = connection.info.dbname
        role = sql.Identifier(f"{database}_owner")
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD 'owner'").format(role))
        connection.execute(sql.SQL("DROP SCHEMA watchroom CASCADE"))
        connection.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(str(database)), role)
        )
        host = connection.info.host
        port = connection.info.port
    owner = f"postgresql://{database}_owner:owner@/{database}?host={host}&port={port}"
    with closing(DatabaseMembers(owner)) as members:
        alice, dana = members.add("alice", "agent"), members.add("dana", "supervisor")
    with closing(psycopg.connect(alice)) as held, closing(open_journal(dana)) as journal:
        append(held)
        begun = monotonic()
        journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        assert monotonic() - begun < BOUND


def test_a_hung_transaction_of_a_member_s_own_program_is_tried_again(dana: str) -> None:
    """Between an append and its commit the session is ended: nothing was changed, and the program says so."""
    with closing(open_journal(dana)) as journal, closing(psycopg.connect(dana)) as other:
        append_as = json.dumps([DRAFT | {"actor": "human:dana"}])
        other.execute(
            "SELECT * FROM watchroom.append(%s, %s::jsonb, %b::bytea[])", (uuid4(), append_as, [None])
        )
        journal.append([Note("human:dana", "pause_agent", "session", "alice")])
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
        assert journal.last_seq() == 1


def test_the_error_of_a_refused_row_says_which_rule_it_breaks(alice: str) -> None:
    with closing(open_journal(alice)) as journal:
        with pytest.raises(JournalError) as caught:
            journal.append([Write("alice", "no tool", "collab", "a.md", "x")])
        assert caught.value.code == "draft_refused"
        assert "the tool is not an identifier" in str(caught.value)


def test_a_database_of_an_older_version_is_migrated_when_its_owner_opens_it(postgres_server: Server) -> None:
    url = postgres_server.create(f"old{uuid4().hex[:8]}")
    with psycopg.connect(url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute("CREATE SCHEMA watchroom")
        connection.execute("CREATE TABLE watchroom.schema_version (version integer NOT NULL)")
        connection.execute("INSERT INTO watchroom.schema_version VALUES (5)")
        connection.execute("SET search_path = watchroom, pg_temp")
        for step in steps()[:5]:
            connection.execute(step.encode())
        role = f"{database}_agent_alice"
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'alice'").format(sql.Identifier(role)))
        connection.execute("SELECT admit(%s, 'alice', 'agent')", (role,))
        old = {
            "w": True,
            "actor": "alice",
            "tool": "t",
            "zone": "board",
            "path": "zzz",
            "message": "",
            "base": -1,
        }
        old |= {"detail": "", "key": "", "blockable": True, "above": []}
        connection.execute(
            "SELECT * FROM append(%s, %s::jsonb, %b::bytea[])", (uuid4(), json.dumps([old]), [b"\xff"])
        )
        host, port = connection.info.host, connection.info.port
    alice = f"postgresql://{role}:alice@/{database}?host={host}&port={port}"
    with pytest.raises(JournalDenied):
        open_journal(alice)
    with closing(open_journal(url)) as journal:
        assert [(row.zone, row.path) for row in journal.rows()] == [("board", "zzz")], "old rows stay"
        with pytest.raises(DraftRefused):
            journal.append([Write("alice", "no tool", "collab", "a.md", "x")])
    with closing(open_journal(alice)) as journal:
        assert journal.append([Write("alice", "t", "collab", "a.md", "x")])[0].row.outcome == "ok"
        with psycopg.connect(alice) as connection:
            assert connection.execute("SHOW lock_timeout").fetchone() == ("10s",)
    with psycopg.connect(url) as connection:
        limits = connection.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = %s", (role,))
        assert limits.fetchone() == (30,)
