"""Who is not seen alive: what a killed process ran, by its lease, before and after a row says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest
from evidence import all_rows
from watchroom import Workspace
from watchroom.kernel.journal import Presence, SqliteJournal
from watchroom.model import LOST

pytestmark = pytest.mark.slow(3)

PATIENCE = 30.0
HOLD_A_LEASE = """
import sys
from watchroom.kernel.journal.sqlite import SqliteJournal

journal = SqliteJournal(sys.argv[1])
print(journal.presence.hold("go on"), flush=True)
sys.stdin.read()
"""


def show(root: Path, view: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "watchroom_cli.main", "show", str(root), view, "--json"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    lines: list[dict[str, object]] = json.loads(shown.stdout)
    return lines


@pytest.fixture
def killed_demo(tmp_path: Path) -> Path:
    """A workspace whose demo was killed while the agents' sessions ran."""
    root = tmp_path / "team"
    command = [sys.executable, "-m", "watchroom_cli.main", "demo", str(root), "--agents", "4", "--headless"]
    demo = subprocess.Popen([*command, "--for", "600"], stdout=subprocess.DEVNULL)
    try:
        until = monotonic() + PATIENCE
        while not (root / ".watchroom/journal.db").exists() or not running_sessions(root):
            assert demo.poll() is None
            assert monotonic() < until
            sleep(0.1)
        assert {line["status"] for line in show(root, "sessions")}.isdisjoint({"not seen alive"})
    finally:
        demo.send_signal(signal.SIGKILL)
        demo.wait()
    # The process that it began for one of its agents ends when it notices; it may hold no lease yet.
    until = monotonic() + PATIENCE
    while is_at_work(root) or any(each.is_alive for each in presences(root)):
        assert monotonic() < until
        sleep(0.1)
    return root


def is_at_work(root: Path) -> bool:
    """Whether a process was started for the workspace at ``root``."""
    lines = (each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"]))
    return any(str(root) in word for line in lines for word in line)


def presences(root: Path) -> Sequence[Presence]:
    journal = SqliteJournal(root / ".watchroom/journal.db")
    try:
        return journal.presence.all()
    finally:
        journal.close()


def running_sessions(root: Path) -> list[str]:
    journal = SqliteJournal(root / ".watchroom/journal.db")
    try:
        return [head.path for head in journal.heads("session") if head.detail.get("status") == "running"]
    finally:
        journal.close()


def test_what_a_killed_demo_ran_is_not_seen_alive(killed_demo: Path) -> None:
    sessions = show(killed_demo, "sessions")
    lost = {line["agent"] for line in sessions if line["status"] == "not seen alive"}
    assert lost
    assert not {line["status"] for line in sessions} & {"running", "waiting_for_human_input"}
    agents = {str(line["agent"]): line["status"] for line in show(killed_demo, "agents")}
    assert {agent for agent, status in agents.items() if status == "not seen alive"} == lost
    assert "running" not in agents.values()
    assert [line["status"] for line in show(killed_demo, "tasks")] == ["not seen alive"]
    (need,) = [line for line in show(killed_demo, "needs") if line["kind"] == "lost"]
    assert f"watchroom demo {killed_demo}" in str(need["what"])

    with Workspace.open(killed_demo):
        pass
    with Workspace.open(killed_demo) as workspace:
        told = [row for row in all_rows(workspace.journal) if row.tool == LOST]
        assert [(row.path, row.error) for row in told] == [(need["path"], "not_seen_alive")]
        assert [each for each in workspace.journal.presence.all() if not each.is_alive] == []
        assert [line["what"] for line in show(killed_demo, "needs") if line["kind"] == "lost"] == [
            need["what"]
        ]
        workspace.tools_for_human("dana").dispatch_tool_call("mark_as_seen", {"row": told[0].seq})
    assert "lost" not in {line["kind"] for line in show(killed_demo, "needs")}
    assert {
        line["agent"] for line in show(killed_demo, "sessions") if line["status"] == "not seen alive"
    } == lost


def test_nothing_runs_and_nothing_is_missed_after_a_demo_has_ended(tmp_path: Path) -> None:
    root = tmp_path / "team"
    command = [sys.executable, "-m", "watchroom_cli.main", "demo", str(root), "--agents", "4", "--headless"]
    subprocess.run([*command, "--for", "3"], check=True, stdout=subprocess.DEVNULL)
    found = {str(line["status"]) for view in ("agents", "sessions", "tasks") for line in show(root, view)}
    assert found <= {"idle", "done", "stopped", "open", "waiting", "error", "paused"}
    assert "lost" not in {line["kind"] for line in show(root, "needs")}


def test_a_lease_runs_out_with_its_process_and_is_released_with_its_journal(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    assert journal.presence.all() == []
    own = journal.presence.hold()
    assert journal.presence.hold("again") == own
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_A_LEASE, str(tmp_path / "journal.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = other.stdout.readline().strip()
        held = {each.id: each for each in journal.presence.all()}
        assert {name: each.is_alive for name, each in held.items()} == {own: True, theirs: True}
        assert (held[theirs].process, held[theirs].resume) == (other.pid, "go on")
        journal.presence.forget(theirs)
        assert {each.id for each in journal.presence.all()} == {own, theirs}
        other.kill()
        other.wait()
    assert {each.id: each.is_alive for each in journal.presence.all()} == {own: True, theirs: False}
    journal.presence.forget(theirs)
    journal.presence.forget(theirs)
    journal.close()
    again = SqliteJournal(tmp_path / "journal.db")
    assert again.presence.all() == []
    again.close()
