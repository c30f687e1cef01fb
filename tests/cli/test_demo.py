"""``watchroom demo``: a simulated team without a screen."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cli.running import Captured, as_typed, misuse, spawned
from pty_driver import Terminal
from watchroom import Workspace
from watchroom.errors import WatchroomError
from watchroom.features.overview.snapshots import read_model
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.main import OK

PATIENCE = 60


def test_a_headless_demo_prints_a_summary_with_a_clean_verdict(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    done = spawned("demo", str(root), "--headless", "--for", "3", "--speed", "0", "--agents", "4")
    assert (done.returncode, done.stderr) == (OK, "")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["verify"] == "clean"
    assert summary["calls"] > 0
    assert set(summary) >= {"rows", "outcomes", "conflicts", "recoveries", "handoffs_sent", "edits"}
    ended = summary["recoveries"] + summary["abandoned"]
    quick = summary["quick_recoveries"] / ended if ended else 1.0
    assert summary["recovery_rate"] == round(quick, 4), "within two tries (FILES-goals)"
    with Workspace.open(root, create=False) as workspace:
        assert workspace.journal.last_seq() == sum(summary["rows"].values())
        assert len(workspace.config.agents) == 4
        assert workspace.verify() == []


def test_the_demo_of_a_repository_leaves_it_in_its_folder(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "demo"
    done = spawned("demo", str(folder), "--scenario", "repository", "--headless", "--speed", "0")
    assert done.returncode == OK, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["is_over"], summary["errors"], summary["verify"]) == (True, [], "clean")
    assert summary["changed"]["README.md"] == ["claude1", "claude2"]
    with Workspace.open(folder / ".git/watchroom", create=False) as workspace:
        assert workspace.journal.last_seq() == sum(summary["rows"].values())
    again = misuse(capsys, "demo", str(folder), "--scenario", "repository", "--headless")
    assert "Choose an empty or new folder" in again


@pytest.mark.parametrize("option", ["--agents", "--machines"])
def test_the_demo_of_a_repository_has_its_own_team(capsys: Captured, option: str) -> None:
    said = misuse(capsys, "demo", "--scenario", "repository", "--headless", option, "3")
    assert "--agents and --machines" in said


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["--plain"], signal.SIGTERM),
        (["--plain"], signal.SIGHUP),
        (["--headless", "--for", "600"], signal.SIGTERM),
        ([], signal.SIGTERM),
    ],
    ids=["plain-term", "plain-hup", "headless-term", "dashboard-term"],
)
def test_a_signal_stops_the_agents_of_a_demo_without_losing_them(
    tmp_path: Path, options: list[str], number: signal.Signals
) -> None:
    root = tmp_path / "demo"
    command = as_typed("demo", str(root), "--agents", "3", *options)
    with Terminal(command, env={"XDG_CONFIG_HOME": str(tmp_path / "config")}) as terminal:
        wait_for_work(root)
        if not options:
            terminal.wait_for_text("Activity", timeout=PATIENCE)
        os.kill(terminal.pid, number)
        status = terminal.wait(PATIENCE)
    # A dashboard closes as with its own key. The others end by the signal, after closing everything.
    assert status == (-number if options else OK)
    with Workspace.open(root, create=False) as workspace:
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [view.agent.id for view in model.agents if view.is_lost] == []
        assert [need for need in model.needs if need.kind == "lost"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="tgkill(2) and /proc are Linux's")
def test_a_headless_demo_ends_on_a_signal_to_another_thread(tmp_path: Path) -> None:
    command = as_typed("demo", str(tmp_path / "demo"), "--headless", "--for", "600", "--agents", "3")
    with Terminal(command, env={"XDG_CONFIG_HOME": str(tmp_path / "config")}) as terminal:
        wait_for_work(tmp_path / "demo")
        pid = terminal.pid
        thread = next(int(each) for each in os.listdir(f"/proc/{pid}/task") if int(each) != pid)
        assert ctypes.CDLL(None).tgkill(pid, thread, signal.SIGTERM) == 0
        assert terminal.wait(PATIENCE) == -signal.SIGTERM


def wait_for_work(root: Path) -> None:
    """Wait until an agent of the demo has acted."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(WatchroomError), closing(open_journal(str(root))) as journal:
            if any(row.kind == "agent" for row in journal.rows(limit=1000)):
                return
        time.sleep(0.1)
    raise AssertionError("no agent does anything")


def test_demo_needs_three_agents(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "demo"
    assert "3 or more" in misuse(capsys, "demo", str(root), "--headless", "--for", "0", "--agents", "2")
    assert not root.exists()
