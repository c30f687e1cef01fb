"""What the tests of the fold share: a model of all rows, and short ways to make it."""

from __future__ import annotations

from pathlib import Path

from calls import ok, refused
from evidence import all_rows
from watchroom import Toolbox, Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model, Need
from watchroom.kernel.journal import Journal

PLAN = "plan.md"


def folded(journal: Journal, until: int | None = None) -> Model:
    fold = Fold(journal.content, journal.row)
    fold.apply(row for row in all_rows(journal) if until is None or row.seq <= until)
    return fold.model()


def needs(workspace: Workspace, kind: str | None = None) -> list[Need]:
    """The open needs, as of now."""
    workspace.flush()
    return [need for need in folded(workspace.journal).needs if kind in (None, need.kind)]


def write(toolbox: Toolbox, text: str, expected: int, path: str = PLAN) -> int:
    result = ok(toolbox, "collab_write", filepath=path, content=text, message=text, expected_version=expected)
    return int(result["version"])


def stale_write(toolbox: Toolbox, expected: int, path: str = PLAN) -> int:
    """A write that is refused; returns its row's number."""
    result = refused(
        toolbox, "collab_write", filepath=path, content="late", message="late", expected_version=expected
    )
    assert result["is_conflict"]
    return int(result["conflict_id"])


def shared_path(root: Path, path: str = PLAN) -> Path:
    return root / "collaborative/current" / path


def denied(toolbox: Toolbox, times: int) -> None:
    for _ in range(times):
        refused(toolbox, "save_to_my_workspace", filename="../x", content="")


def deliver(sender: Toolbox, receiver: str = "bob", name: str = "raw.md", content: str = "data") -> None:
    ok(sender, "handoff_file", to_agent=receiver, filename=name, content=content, message="for you")


def acknowledge(receiver: Toolbox, sender: str = "alice", name: str = "raw.md") -> None:
    ok(receiver, "acknowledge_handoff", from_agent=sender, filename=name)
