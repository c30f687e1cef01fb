"""When the journal refuses a row, nothing goes on as if it were there, and nothing that has a row is reported as
refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from calls import ok, refused
from refusing import refusing
from watchroom import Toolbox, Workspace
from watchroom.model import PAUSE

pytestmark = pytest.mark.sqlite
PATIENCE = 20.0


def test_an_entry_is_not_reported_as_refused_because_the_lock_stays(root: Path, alice: Toolbox) -> None:
    board = "bottom-layer-alice"
    ok(alice, "whiteboard_read", board=board, hold=True)
    with refusing(root, "NEW.tool = 'release_board'"):
        ok(alice, "whiteboard_append", board=board, content="Once.")
    assert ok(alice, "whiteboard_append", board=board, content="Later.")["version"] == 2
    assert ok(alice, "whiteboard_read", board=board)["content"].count("Once.") == 1


def test_a_looping_agent_is_paused_once_the_journal_accepts_the_pause(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    workspace.background.start()
    with refusing(root, f"NEW.tool = '{PAUSE}'"):
        for _ in range(8):
            refused(alice, "collab_read", filepath="missing.md")
        time.sleep(0.3)
    deadline = time.monotonic() + PATIENCE
    while not workspace.journal.notes("agent", "alice", "system", PAUSE):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_plan_and_the_notices_about_it_are_one_commit(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "declare_plan", paths=["src/a.py"], intent="fix a")
    with refusing(root, "NEW.tool = 'send_message' AND NEW.path = 'alice'"):
        assert refused(bob, "declare_plan", paths=["src/*"], intent="all")["error"] == "journal_failed"
    assert [each["agent"] for each in ok(alice, "list_plans")["plans"]] == ["alice"]
    ok(bob, "declare_plan", paths=["src/*"], intent="all")
    assert len(workspace.messages.find_waiting("alice")) == 1
