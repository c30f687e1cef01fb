"""Threads share the connections to a server: a session there costs as much as a dozen questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from logging import LogRecord
from queue import Queue
from threading import Event

import psycopg
import pytest
from journal.server import Server
from psycopg import sql
from watchroom.kernel.journal.postgres.changes import Listener
from watchroom.kernel.journal.postgres.connections import Connections

pytestmark = pytest.mark.postgres

LONG = 60.0
NEVER = -1.0
"""To wait so long is an error."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as executor:
        yield executor


def test_who_asks_while_another_does_gets_its_connection(
    new_database: Callable[[], str], threads: ThreadPoolExecutor
) -> None:
    with closing(Connections(new_database(), share=LONG)) as connections:
        asking = Event()

        def ask() -> int:
            asking.set()
            return int(connections.ask("SELECT pg_backend_pid()")[0][0])

        for _ in range(10):
            with connections.use() as connection:
                asking.clear()
                other = threads.submit(ask)
                asking.wait(LONG)
            assert other.result() == connection.info.backend_pid


def test_who_has_a_connection_and_needs_another_does_not_wait_for_itself(
    new_database: Callable[[], str],
) -> None:
    with (
        closing(Connections(new_database(), share=NEVER)) as connections,
        connections.use() as first,
        connections.use() as second,
    ):
        assert first.info.backend_pid != second.info.backend_pid


def test_what_soon_ends_tells_others_of_its_rows_by_the_connection_that_it_has(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    with closing(Connections(url, share=LONG)) as connections, psycopg.connect(url, autocommit=True) as other:
        other.execute("LISTEN watchroom")
        listener = Listener(connections, lambda _: 0, lambda: None, listen_after=LONG)
        listener.announce()
        assert list(other.notifies(timeout=LONG, stop_after=1))
        listener.announce()
        listener.close()
        assert list(other.notifies(timeout=LONG, stop_after=1))
        ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'watchroom'"
        assert other.execute(ours).fetchone() == (1,)


def test_what_could_not_be_told_yet_is_told_once_it_listens(
    postgres_server: Server, new_database: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    url = new_database()
    warned = Event()

    def see(_: LogRecord) -> bool:
        warned.set()
        return True

    caplog.handler.addFilter(see)
    with (
        closing(Connections(url)) as connections,
        psycopg.connect(url, autocommit=True) as other,
        psycopg.connect(postgres_server.url(), autocommit=True) as admin,
    ):
        let_in = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format
        name = sql.Identifier(other.info.dbname)
        other.execute("LISTEN watchroom")
        admin.execute(let_in(name, sql.SQL("false")))
        listener = Listener(connections, lambda _: 0, lambda: None, listen_after=LONG)
        listener.announce()
        assert warned.wait(LONG)
        admin.execute(let_in(name, sql.SQL("true")))
        assert list(other.notifies(timeout=LONG, stop_after=1))
        listener.close()


def test_a_listener_that_closes_before_its_first_notification_reports_no_polling(
    new_database: Callable[[], str], threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    closed: Queue[Future[None]] = Queue()

    def close_meanwhile() -> None:
        closing_listener = threads.submit(listener.close)
        # It waits for this thread, so it cannot end here.
        with suppress(TimeoutError):
            closing_listener.result(0.2)
        closed.put(closing_listener)

    with closing(Connections(new_database())) as connections:
        listener = Listener(connections, lambda _: 0, close_meanwhile, listen_after=0)
        listener.announce()
        closed.get(timeout=LONG).result(LONG)
    assert caplog.records == []
