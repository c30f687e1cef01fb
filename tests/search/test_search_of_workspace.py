"""A workspace keeps its index while it is open, and answers from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from calls import ok
from documents import create, edit, put
from watchroom import Workspace
from watchroom.history.search import SearchQuery, open_index
from watchroom.history.search.database import INDEX_NAME
from watchroom.kernel.checkout.layout import CONTROL

PATIENCE = 20.0


def wait_until(workspace: Workspace, holds: Callable[[], bool]) -> None:
    """Look again every few milliseconds: no row tells that rows were indexed."""
    changes = workspace.journal.changes()
    until = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < until
        changes.wait(0.01)
    changes.close()


def test_an_open_workspace_indexes_what_comes_and_begins_anew_where_the_file_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.workspace._INDEX_SECONDS", 0.01)
    with Workspace.open(tmp_path, agents=["alice"]) as workspace:

        def finds(word: str) -> bool:
            return bool(workspace.search(SearchQuery(word)).hits)

        ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content="first idea", message="m")
        wait_until(workspace, lambda: finds("idea"))
        (tmp_path / CONTROL / INDEX_NAME).unlink()
        wait_until(workspace, lambda: finds("idea"))
        ok(workspace.tools("alice"), "collab_write", filepath="b.md", content="second thought", message="m")
        wait_until(workspace, lambda: finds("thought"))
        # Who only looks at the folder finds the same.
        (hit,) = open_index(tmp_path).search(workspace.journal, SearchQuery("thought")).hits
        assert (hit.row.path, hit.row.version, hit.row.actor) == ("b.md", 1, "alice")
        assert workspace.verify() == []


def test_what_was_written_into_a_document_is_found_as_the_line_that_it_became(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        create(alice, body="rga", title="lww_register")
        edit(alice, "insert", position=0, text="minutes\nthe zeb dances\n")
        edit(bob, "insert", position=15, text="ra")
        put(alice, "title", "第二次会议")
        edit(bob, "delete", **{"from": 0, "to": 8})
        index = open_index(tmp_path)
        index.index_missing(workspace.journal, Event(), share=1.0)

        def search(words: str) -> list[tuple[str, int | None, str]]:
            hits = index.search(workspace.journal, SearchQuery(words)).hits
            return [(hit.row.actor, hit.row.version, hit.excerpt) for hit in hits]

        assert search("zebra") == [("bob", 3, "the zebra dances\n")]
        assert [each[:2] for each in search("dances")] == [("bob", 3), ("alice", 2)]
        assert [each[:2] for each in search("会议")] == [("alice", 4)]
        assert [each[:2] for each in search("minutes")] == [("alice", 2)]
