"""Workspaces of versions 0.1.0 and 0.2.0, whose processes were killed: they open, verify clean, and go on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import get_args

import pytest
from calls import ok
from watchroom import Workspace
from watchroom.features.trees.rows import REPO, TREE
from watchroom.model import Zone
from watchroom_cli.main import main

FIXTURES = Path(__file__).parents[1] / "fixtures"
ZONES = {
    *("private", "handoff", "collab", "board", "lease", "config", "request", "realtime", "task", "file"),
    *("command", "buffer", "token"),
}
VERSIONS = 75


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """In a folder, whatever journal the tests are run on: that version knew no server."""
    return tmp_path / "team"


def unpack(version: str, root: Path) -> None:
    root.mkdir()
    subprocess.run(["tar", "-xf", FIXTURES / f"workspace-{version}.tar.gz", "-C", root], check=True)


@pytest.fixture
def old(root: Path) -> Iterator[Workspace]:
    unpack("0.1.0", root)
    with Workspace.open(root) as opened:
        yield opened


@pytest.fixture
def sealed(root: Path) -> Iterator[Workspace]:
    """The workspace of version 0.2.0: sealed, closed, with signed decisions, and tokens between the seals."""
    unpack("0.2.0", root)
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


def test_a_sealed_workspace_opens_and_verifies_clean(
    root: Path, sealed: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sealed.journal.rows(limit=10_000)
    zones_since = {TREE, REPO, "grant"}
    assert {row.zone for row in rows if row.version is not None} == set(get_args(Zone)) - zones_since
    assert sealed.verify() == []
    report = sealed.sealing.verify()
    assert report.findings == ()
    assert report.newest is not None
    assert [each.kind for each in report.anchors] == ["decision"] * 2
    assert main(["verify", str(root)]) == 0, capsys.readouterr()


def test_a_sealed_workspace_goes_on(sealed: Workspace) -> None:
    assert {each.name for each in sealed.people.current().persons} == {"dana", "eve"}
    lead = sealed.tools("lead")
    ok(lead, "collab_write", filepath="late.md", content="by the new version\n", message="m")
    ok(lead, "realtime_set_field", doc_id="notes", field_name="title", value="New")
    sealed.flush()
    assert sealed.sealing.write_due(Event(), at_once=True) is not None
    assert sealed.sealing.verify().findings == ()
    assert sealed.verify() == []
