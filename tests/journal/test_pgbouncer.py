"""Behind a pooler that gives each transaction another session on the server, the journal polls, and holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
import pytest
from journal.faults import PATIENCE, Writers, opened
from journal.test_postgres_away import NOTE, claim, until
from psycopg.conninfo import conninfo_to_dict
from watchroom.kernel.journal import Journal
from watchroom.kernel.journal.postgres import PostgresJournal
from watchroom.kernel.journal.postgres.changes import _BACKSTOP_SECONDS

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not shutil.which("pgbouncer"), reason="there is no pgbouncer on this machine"),
]

SETTINGS: Final = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 12
logfile = {folder}/log
"""


@pytest.fixture
def pooled(new_database: Callable[[], str]) -> Iterator[str]:
    """The address of an empty journal through a pooler."""
    url = new_database()
    told = conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="wr-pb-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(folder=folder, **told))
    if os.geteuid() == 0:
        for path in (folder, settings):
            shutil.chown(path, "nobody")
    with subprocess.Popen(
        ["pgbouncer", "-q", str(settings)],
        user="nobody" if os.geteuid() == 0 else None,
        stderr=subprocess.DEVNULL,
    ) as pooler:
        through = url.replace(quote(str(told["host"]), safe=""), quote(str(folder), safe=""))
        try:
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    psycopg.connect(through).close()
                    break
                except psycopg.OperationalError:
                    assert time.monotonic() < end
                    time.sleep(0.02)
            yield through
        finally:
            pooler.terminate()
            pooler.wait(PATIENCE)
            shutil.rmtree(folder)


def polls(journal: Journal) -> bool:
    assert isinstance(journal, PostgresJournal)
    return journal.is_polling


def test_a_pooled_journal_polls_and_loses_nothing(pooled: str) -> None:
    with opened(pooled, pooled) as journals:
        writers = Writers(journals, threads=4)
        with writers.writing():
            writers.wait_for(400)
        writers.check(journals[0])
        assert (writers.unknown, writers.refused) == (set(), set())
        until(lambda: all(map(polls, journals)))


def test_a_row_of_another_is_heard_of_through_a_pooler(pooled: str) -> None:
    with (
        opened(pooled, pooled) as (journal, other),
        ThreadPoolExecutor() as threads,
        closing(journal.changes()) as changes,
    ):

        def wait_for_row(seq: int) -> None:
            while not journal.row(seq):
                changes.wait(PATIENCE)

        until(lambda: polls(journal))
        for seq in range(1, 4):
            woken = threads.submit(wait_for_row, seq)
            other.append([NOTE])
            woken.result(_BACKSTOP_SECONDS - 1)


def test_sections_and_claims_exclude_others_through_a_pooler(pooled: str) -> None:
    with opened(pooled, pooled) as (journal, other):
        with journal.claim("task") as is_ours:
            assert is_ours
            for _ in range(5):
                assert other.is_claimed("task")
                assert not claim(other, "task")
            assert claim(other, "other")
        assert claim(other, "task")
        within = most = 0

        def count(asked: Journal) -> None:
            nonlocal within, most
            with asked.exclusive("a"):
                within += 1
                most = max(most, within)
                asked.append([NOTE])
                within -= 1

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(count, [journal, other] * 8))
        assert (most, within) == (1, 0)
