"""Seals of a journal on a server: its owner's login writes them, and all members find the same root."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from watchroom.history.seal import Anchors, verify_seals
from watchroom.kernel.journal import RowFilter, open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import Write

from seal.sealed import notes, seal

pytestmark = pytest.mark.postgres


def test_the_owner_seals_and_a_member_who_may_not_read_tokens_finds_the_same(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_database()
    anchors = Anchors(str(tmp_path), url)
    with closing(open_journal(url)) as journal:
        journal.append([*notes(3), Write("human:dana", "create_token", "token", "t", "{}"), *notes(3)])
        row = seal(journal, anchors)
        assert row is not None
        shown = journal.rows_before(row.seq + 1, only=RowFilter(steps=False))
        assert {each.tool for each in shown} == {"look", "create_token"}
    with closing(DatabaseMembers(url)) as members:
        address = members.add("alice", "agent")
    with closing(open_journal(address)) as journal:
        report = verify_seals(journal, anchors.read)
        assert (report.findings, report.rows, report.since) == ((), 8, 0)
        journal.append(notes(1))
        # Nobody writes in the system's name with an agent's login.
        assert seal(journal, anchors) is None
