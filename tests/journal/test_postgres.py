"""The journal on a server conforms; and what it promises of a server: nothing lost, nothing twice, no gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import psycopg
import pytest
from effort import rounds
from hypothesis import strategies as st
from hypothesis.stateful import rule
from journal.conformance import (
    BlobConformance,
    Conformance,
    JournalMachine,
    SnapshotConformance,
    run_against_the_model,
)
from watchroom.features.overview.snapshots import keep_missing, open_fold
from watchroom.kernel.journal import Journal, open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import Note, Write

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

    run_against_the_model(open_database, PostgresMachine, is_durable=True, examples=rounds(8, 60))


class TestPostgres(Conformance, SnapshotConformance, BlobConformance):
    @pytest.fixture
    def journal(self, url: str) -> Iterator[Journal]:
        journal = open_journal(url)
        yield journal
        journal.close()


def test_a_fold_begins_at_a_snapshot_which_the_owner_and_members_do_not_share(url: str) -> None:
    with closing(DatabaseMembers(url)) as members:
        dana, eve = members.add("dana", "supervisor"), members.add("eve", "supervisor")
    with (
        closing(open_journal(url)) as owner,
        closing(open_journal(dana)) as first,
        closing(open_journal(eve)) as second,
    ):
        owner.append([Note("system", "issue_token", "token", "t")])
        owner.append([Write("alice", "t", "collab", f"{n}.md", "x") for n in range(30)])
        keep_missing(owner, Event(), rows=10)
        assert open_fold(owner).seq == 30
        assert open_fold(first).seq == 0, "the owner sees more"
        keep_missing(first, Event(), rows=10)
        assert (open_fold(first).seq, open_fold(second).seq) == (30, 30)
        assert set(open_fold(second).model().files) == set(open_fold(owner).model().files)
