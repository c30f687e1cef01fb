"""The journal on a server conforms; and what it promises of a server: nothing lost, nothing twice, no gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from journal.conformance import Conformance, JournalMachine, SnapshotConformance, run_against_the_model
from watchroom.journal import Journal, open_journal

pytestmark = pytest.mark.postgres

NewDatabase = Callable[[], str]


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    return new_database()


class PostgresMachine(JournalMachine):
    url: str

    @rule(
        sql=st.sampled_from(
            (
                "UPDATE watchroom.rows SET message = 'x'",
                "DELETE FROM watchroom.rows",
                "TRUNCATE watchroom.rows",
                "DELETE FROM watchroom.contents",
            )
        )
    )
    def meddle(self, sql: str) -> None:
        with (
            psycopg.connect(self.url, autocommit=True) as connection,
            pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="immutable"),
        ):
            connection.execute(sql.encode())


def test_the_server_s_journal_answers_as_a_plain_list_of_rows_would(new_database: NewDatabase) -> None:
    urls: dict[Path, str] = {}

    def open_database(folder: Path) -> Journal:
        if folder not in urls:
            urls[folder] = PostgresMachine.url = new_database()
        return open_journal(urls[folder])

    run_against_the_model(open_database, PostgresMachine, is_durable=True, examples=15)


class TestPostgres(Conformance, SnapshotConformance):
    @pytest.fixture
    def journal(self, url: str) -> Iterator[Journal]:
        journal = open_journal(url)
        yield journal
        journal.close()
