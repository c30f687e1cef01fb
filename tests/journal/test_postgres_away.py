"""While the server is away the journal says so, and goes on when it is back; and who is there, across machines."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import psycopg
import pytest
from journal.faults import opened
from journal.server import running_server
from watchroom.errors import JournalUnreachable, OutcomeUnknown
from watchroom.kernel.background import Background
from watchroom.kernel.commit import GroupCommit
from watchroom.kernel.journal import Journal, open_journal
from watchroom.kernel.journal.postgres import PostgresJournal
from watchroom.model import Note

pytestmark = [pytest.mark.postgres, pytest.mark.slow(35)]

NOTE: Final = Note("alice", "t", "collab", "a")
SOON: Final = 10.0
HOLD_A_LEASE: Final = """
import sys, time
from watchroom.kernel.journal import open_journal

print(open_journal(sys.argv[1]).presence.hold("go on"), flush=True)
time.sleep(600)
"""


def until(holds: Callable[[], object], seconds: float = SOON) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(journal: Journal, lease: str) -> bool:
    return {each.id: each.is_alive for each in journal.presence.all()}[lease]


def enter(journal: Journal) -> None:
    with journal.exclusive("section"):
        pass


def claim(journal: Journal, key: str = "other") -> bool:
    with journal.claim(key) as is_ours:
        return is_ours


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_who_asks_while_the_server_is_away_is_told_and_all_goes_on_when_it_is_back(how: str) -> None:
    with running_server() as server, ThreadPoolExecutor() as threads:
        url = server.create("journal")
        with (
            opened(url, url) as (journal, other),
            closing(journal.changes()) as changes,
            journal.claim("task") as is_ours,
        ):
            assert is_ours
            lease = journal.presence.hold("go on")
            journal.append([NOTE])
            enter(journal)

            def wait_for_row(seq: int) -> None:
                while not journal.row(seq):
                    changes.wait(SOON)

            server.stop(how)
            asked: list[Callable[[], object]] = [
                journal.last_seq,
                lambda: journal.append([NOTE]),
                lambda: enter(journal),
                lambda: claim(journal),
                lambda: journal.is_claimed("other"),
                journal.presence.all,
                lambda: open_journal(url),
            ]
            for each in [threads.submit(ask) for ask in asked]:
                with pytest.raises(JournalUnreachable):
                    each.result(SOON)
            server.start()
            # None of these is told to try again.
            assert journal.last_seq() == 1
            woken = threads.submit(wait_for_row, 2)
            assert other.append([NOTE])[0].row.seq == 2
            woken.result(SOON)
            assert journal.append([NOTE])[0].row.seq == 3
            enter(journal)
            assert claim(journal)
            until(lambda: is_alive(other, lease), 2)
            until(lambda: other.is_claimed("task"))
            assert not claim(other, "task")
            with psycopg.connect(url, autocommit=True) as connection:
                renewed = "SELECT seen > pg_postmaster_start_time() FROM watchroom.presences"
                until(lambda: connection.execute(renewed).fetchone() == (True,))
            assert is_alive(other, lease)


def test_notes_wait_for_a_server_that_is_away() -> None:
    with (
        running_server() as server,
        opened(server.create("journal")) as (journal,),
        closing(Background(journal)) as background,
    ):
        group = GroupCommit(journal, background)
        server.stop()
        for n in range(3):
            group.note(NOTE._replace(message=str(n)))
        with pytest.raises(JournalUnreachable):
            group.commit(NOTE._replace(message="refused"))
        server.start()
        group.flush()
        assert [row.message for row in journal.rows()] == ["0", "1", "2"]


def test_a_server_that_says_nothing_is_given_up() -> None:
    with (
        running_server() as server,
        closing(PostgresJournal(server.create("journal"), silence=1)) as journal,
        ThreadPoolExecutor() as threads,
    ):
        # A connection for each that asks below, and for what tells others of the row.
        with journal.exclusive("one"), journal.exclusive("another"):
            journal.append([NOTE])
        server.freeze()
        try:
            reading = threads.submit(journal.last_seq)
            writing = threads.submit(journal.append, [NOTE])
            with pytest.raises(JournalUnreachable):
                reading.result(SOON)
            with pytest.raises(OutcomeUnknown):
                writing.result(2 * SOON)
        finally:
            server.thaw()
        # The server may commit the row whose outcome is unknown now.
        written = journal.append([NOTE])[0].row
        assert written in [*journal.rows()]


def test_a_claim_that_another_took_meanwhile_is_had_again_when_it_is_free(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    with opened(url, url) as (journal, other), journal.claim("task"):
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        with other.claim("task") as is_theirs:
            assert is_theirs
            # From now on the claim is looked after: in vain as yet.
            journal.append([NOTE])
            assert claim(journal)
            assert not claim(journal, "task")
        until(lambda: other.is_claimed("task"))
        assert not claim(other, "task")


def test_the_clock_is_set_by_the_server_now_and_then(new_database: Callable[[], str]) -> None:
    url = new_database()
    hour = 3_600 * 10**9
    define = (
        "CREATE OR REPLACE FUNCTION watchroom.clock_ns() RETURNS bigint LANGUAGE sql VOLATILE"
        " RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 + {}"
    )
    with opened(url) as (journal,), psycopg.connect(url, autocommit=True) as admin:

        def put_clock(ahead: int) -> None:
            admin.execute(define.format(ahead).encode())
            # Whoever listens looks when it is connected anew.
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'watchroom'"
            )

        with closing(journal.changes()):
            before = journal.now()
            put_clock(hour)
            until(lambda: journal.now() >= before + hour)
            ahead = journal.now()
            put_clock(0)
            assert journal.append([NOTE])[0].row.time < ahead
            assert journal.now() >= ahead


def test_a_process_that_is_killed_or_frozen_is_soon_not_seen_alive(new_database: Callable[[], str]) -> None:
    url = new_database()
    command = [sys.executable, "-c", HOLD_A_LEASE, url]
    with (
        opened(url) as (journal,),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as frozen,
    ):
        first, second = (each.stdout.readline().strip() for each in (killed, frozen) if each.stdout)
        assert is_alive(journal, first)
        assert is_alive(journal, second)
        killed.kill()
        frozen.send_signal(signal.SIGSTOP)
        until(lambda: not is_alive(journal, first), 5)
        assert is_alive(journal, second)
        until(lambda: not is_alive(journal, second), 15)
        frozen.send_signal(signal.SIGCONT)
        until(lambda: is_alive(journal, second))
        frozen.kill()
