"""Nothing that was acknowledged is lost, and nothing is there twice, whatever happens to connections, the server and
clients."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from typing import Final
from urllib.parse import quote

import psycopg
import pytest
from journal.faults import PATIENCE, Reader, Writers, opened, proxy
from journal.server import Server, running_server
from psycopg.conninfo import conninfo_to_dict
from watchroom.errors import OutcomeUnknown
from watchroom.kernel.background import Background
from watchroom.kernel.commit import GroupCommit
from watchroom.model import Note

pytestmark = [pytest.mark.postgres, pytest.mark.slow(14)]

TERMINATE: Final = (
    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity"
    " WHERE datname = %s AND application_name = 'watchroom'"
    " ORDER BY state = 'active' DESC, random() LIMIT 3) AS chosen"
)
WRITE: Final = """
import sys
from watchroom.kernel.journal import open_journal
from watchroom.model import Write

journal = open_journal(sys.argv[1])
for n in range(1, 1000):
    draft = Write("alice", "t", "collab", "shared", str(n), message=f"{n}")
    print(journal.append([draft])[0].row.seq, flush=True)
"""


def test_two_hundred_ended_connections_lose_nothing(
    postgres_server: Server, new_database: Callable[[], str]
) -> None:
    url = new_database()
    ended = 0
    with opened(url, url) as journals, psycopg.connect(postgres_server.url(), autocommit=True) as admin:
        writers = Writers(journals)
        with writers.writing():
            while ended < 200:
                writers.wait_for(10)
                found = admin.execute(TERMINATE, (conninfo_to_dict(url)["dbname"],)).fetchone()
                ended += found[0] if found else 0
            writers.wait_for(50)
        writers.check(journals[0])
        # The server was there all the time.
        assert (writers.unknown, writers.refused) == (set(), set())


@pytest.mark.real
def test_thirty_immediate_stops_of_the_server_lose_nothing() -> None:
    with running_server({"fsync": "on"}) as server:
        url = server.create("journal")
        with opened(url, url) as journals:
            writers = Writers(journals)
            with writers.writing():
                for _ in range(30):
                    writers.wait_for(20)
                    server.stop("immediate")
                    server.start()
                writers.wait_for(50)
            writers.check(journals[0])


@pytest.mark.real
def test_a_standby_that_is_promoted_has_all_that_was_acknowledged() -> None:
    with (
        running_server({"fsync": "on"}) as primary,
        running_server({"fsync": "on"}, of=primary) as standby,
        psycopg.connect(standby.url(), autocommit=True) as heir,
    ):
        url = primary.create("journal")
        with psycopg.connect(primary.url(), autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("SELECT pg_reload_conf()")
            until = time.monotonic() + PATIENCE
            while admin.execute("SELECT sync_state FROM pg_stat_replication").fetchall() != [("sync",)]:
                assert time.monotonic() < until
                time.sleep(0.02)
        both = ",".join(quote(str(each.folder), safe="") for each in (primary, standby))
        url = url.replace(quote(str(primary.folder), safe=""), both) + "&target_session_attrs=read-write"
        with opened(url, url) as journals, opened(url, url) as (first, second):
            writers = Writers(journals)
            dashboards = Reader(first), Reader(second)
            with dashboards[0].reading(), dashboards[1].reading(), writers.writing():
                writers.wait_for(200)
                before = first.last_seq()
                for dashboard in dashboards:
                    dashboard.wait_until(before)
                primary.kill()
                heir.execute("SELECT pg_promote()")
                writers.wait_for(200)
                # Open all the while, they show what is written now.
                for dashboard in dashboards:
                    dashboard.wait_until(before + 200)
            writers.check(journals[0])


def test_two_hundred_swallowed_answers_double_nothing(new_database: Callable[[], str]) -> None:
    url = new_database()
    numbers = count()
    with proxy(url, lambda: next(numbers) % 3 == 0) as between:
        with opened(between.url, between.url) as journals:
            writers = Writers(journals)
            with writers.writing():
                while between.swallowed < 200:
                    writers.wait_for(10)
        with opened(url) as (journal,):
            writers.check(journal)
            assert (writers.unknown, writers.refused) == (set(), set())


def test_what_shared_a_commit_of_unknown_outcome_is_not_appended_again(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    with (
        proxy(url, lambda: True) as between,
        opened(between.url) as (journal,),
        closing(Background(journal)) as background,
    ):
        group = GroupCommit(journal, background)
        for n in range(3):
            group.note(Note("alice", "t", "collab", "a", message=str(n)))
        # Whoever commits them, this thread or the loop, is never answered.
        with suppress(OutcomeUnknown):
            group.flush()
    with opened(url) as (journal,):
        assert [row.message for row in journal.rows()] == ["0", "1", "2"]


def test_an_append_is_on_disk_whatever_the_session_is_set_to(new_database: Callable[[], str]) -> None:
    url = new_database()
    with opened(url) as (journal,):
        journal.append([Note("alice", "t", "collab", "a")])
    with psycopg.connect(url) as session:
        session.execute("SET synchronous_commit = off")
        session.execute("SELECT watchroom.append(gen_random_uuid(), '[]', '{}')")
        assert session.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_the_keys_of_appends_are_kept_for_a_day(new_database: Callable[[], str]) -> None:
    url = new_database()
    note = Note("alice", "t", "collab", "a")
    with opened(url) as (journal,), psycopg.connect(url, autocommit=True) as admin:
        journal.append([note])
        admin.execute("UPDATE watchroom.attempts SET at = at - interval '25 hours'")
        journal.append([note])
        assert admin.execute("SELECT seqs FROM watchroom.attempts ORDER BY at").fetchall() == [([1],), ([2],)]
        journal.append([note] * 1000)
        assert admin.execute("SELECT seqs[1] FROM watchroom.attempts ORDER BY at").fetchall() == [(2,), (3,)]


def test_a_client_that_is_killed_before_it_is_answered_leaves_the_journal_whole(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    answers = count(1)
    with opened(url) as (journal,):
        for _ in range(3):
            with (
                proxy(url, lambda: next(answers) % 5 == 0, is_silent=True) as between,
                subprocess.Popen(
                    [sys.executable, "-c", WRITE, between.url],
                    stdout=subprocess.PIPE,
                    text=True,
                ) as client,
            ):
                assert between.has_swallowed.wait(PATIENCE)
                client.kill()
                told = [int(line) for line in client.communicate()[0].split()]
            last = journal.last_seq()
            assert told == list(range(last - len(told), last))
            assert len(told) == 4
            assert journal.problems() == []
        versions = journal.history("collab", "shared")
        assert [row.version for row in versions] == list(range(1, 16))
