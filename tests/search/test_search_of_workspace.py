"""A workspace keeps its index while it is open, and answers from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from calls import ok
from watchroom import Workspace
from watchroom.checkout.layout import CONTROL
from watchroom.search import SearchQuery, open_index
from watchroom.search.database import INDEX_NAME

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
