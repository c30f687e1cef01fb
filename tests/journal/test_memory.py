"""The journal in memory conforms, and so do one whose numbers have gaps, and a workspace upon it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from journal.conformance import (
    BlobConformance,
    Conformance,
    JournalMachine,
    SnapshotConformance,
    run_against_the_model,
)
from memory_journal import MemoryJournal
from watchroom import Workspace
from watchroom.errors import JournalUnreachable
from watchroom.kernel.journal import Journal
from watchroom.model import Write


def test_the_journal_in_memory_answers_as_a_plain_list_of_rows_would() -> None:
    run_against_the_model(lambda _: MemoryJournal(gap=3), JournalMachine, is_durable=False, examples=15)


class TestMemory(Conformance, SnapshotConformance, BlobConformance):
    @pytest.fixture(params=[0, 3], ids=["dense", "with gaps"])
    def journal(self, request: pytest.FixtureRequest) -> Journal:
        return MemoryJournal(request.param)


def test_its_time_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    (first, _), *_ = journal.append([Write("alice", "t", "collab", "a", "x")])
    monkeypatch.setattr(time, "time_ns", lambda: first.time - 10**9)
    (second, _), *_ = journal.append([Write("alice", "t", "collab", "a", "y")])
    assert second.time == first.time


def test_a_message_keeps_no_nul(workspace: Workspace) -> None:
    call = {"filepath": "a.md", "content": "x", "message": "a\0b"}
    assert workspace.tools("alice").dispatch_tool_call("collab_write", call)["success"]
    head = workspace.journal.head("collab", "a.md")
    assert head is not None
    assert head.message == "a␀b"


def test_a_workspace_stands_on_any_journal(root: Path) -> None:
    with Workspace.open(root, agents=["alice"], journal=MemoryJournal(gap=2)) as workspace:
        workspace.tools("alice").dispatch_tool_call(
            "collab_write", {"filepath": "a.md", "content": "x", "message": "m", "expected_version": 0}
        )
        assert (root / "collaborative/current/a.md").read_text() == "x"
        assert workspace.verify() == []
    assert not (root / ".watchroom/journal.db").exists()


def test_a_text_that_cannot_be_asked_for_now_is_not_taken_for_lost(root: Path) -> None:
    class AwayJournal(MemoryJournal):
        is_away = False

        def content(self, seq: int) -> str | None:
            if self.is_away:
                raise JournalUnreachable(reason="gone")
            return super().content(seq)

    journal = AwayJournal()
    with Workspace.open(root, agents=["alice"], journal=journal) as workspace:
        workspace.flush()
        journal.append([Write("bob", "t", "collab", "a.md", "x")])
        journal.is_away = True
        with pytest.raises(JournalUnreachable):
            workspace.flush()
        journal.is_away = False
        workspace.flush()
        assert (root / "collaborative/.versions/a.md/v1.txt").read_text() == "x"
