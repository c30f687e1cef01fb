"""A workspace that version 0.1.0 made, and was killed over: it opens, is whole, and goes on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok
from watchroom import Workspace
from watchroom_tui.cli import main

FIXTURE = Path(__file__).parents[1] / "fixtures/workspace-0.1.0.tar.gz"
ZONES = {
    *("private", "handoff", "collab", "board", "lease", "config", "request", "realtime", "task", "file"),
    *("command", "buffer", "token"),
}
VERSIONS = 75


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """In a folder, whatever journal the tests are run on: that version knew no server."""
    return tmp_path / "team"


@pytest.fixture
def old(root: Path) -> Iterator[Workspace]:
    root.mkdir()
    subprocess.run(["tar", "-xf", FIXTURE, "-C", root], check=True)
    with Workspace.open(root) as opened:
        yield opened


def test_it_opens_and_is_whole_in_every_zone(root: Path, old: Workspace) -> None:
    assert {row.zone for row in old.journal.rows() if row.version is not None} == ZONES
    assert old.verify() == []
    # Its process was killed before this was written.
    history = root / "collaborative/.versions/plan.md/history.json"
    assert [entry["version"] for entry in json.loads(history.read_bytes())] == [*range(1, VERSIONS + 1)]
    assert list((root / ".watchroom/behind").iterdir()) == []


def test_it_can_be_written_in_every_zone(root: Path, old: Workspace) -> None:
    alice, bob = old.tools("alice"), old.tools("bob")
    assert ok(alice, "plan_accept_source")["workflow_state"] == "Synced"
    ok(alice, "plan_append", text="by the new version\n")
    ok(alice, "plan_flush")
    assert ok(bob, "collab_read", filepath="plan.md")["version"] == VERSIONS + 1
    ok(bob, "save_to_my_workspace", filename="notes.md", content="new\n")
    ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1\n", message="back")
    ok(alice, "whiteboard_append", board="bottom-layer-alice", content="New")
    ok(bob, "realtime_set_field", doc_id="notes", field_name="title", value="New")
    assert ok(alice, "check_my_handoffs")["count"] == 1
    assert old.verify() == []


@pytest.mark.parametrize("what", ["agents", "needs", "handoffs", "files", "documents", "boards", "requests"])
def test_it_is_shown(root: Path, old: Workspace, capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert old.root == str(root)
    assert main(["show", str(root), what, "--json"]) == 0
    assert capsys.readouterr().out
