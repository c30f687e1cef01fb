"""An agent in a process of its own: counted like the others, told of when it dies, gone when the demo is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest
from child_processes import children
from simulation.playing import PATIENCE, all_rows, run_until, team
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, demo, roster


def test_what_it_does_is_counted_and_what_else_it_prints_does_no_harm(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('good morning')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    others = children()
    with team(root, 3) as (workspace, agents):
        simulation = Simulation(workspace, agents, seed=4, speed=0, apart=[demo().second_process])

        def tester_ended_two() -> bool:
            return sum(head.status == "done" for head in workspace.sessions.list("tester")) >= 2

        summary = run_until(workspace, simulation, tester_ended_two)
        assert summary.errors == ()
        assert children() <= others
        ended = [head for head in workspace.sessions.list() if head.status == "done"]
        assert summary.sessions == len(ended)
        sent = sum((row.tool, row.outcome) == ("handoff_file", "ok") for row in all_rows(workspace))
        assert summary.handoffs_sent == sent
        assert workspace.verify() == []
    assert "tester, in its process: good morning" in caplog.messages


def test_one_that_dies_is_told_of_and_the_others_go_on(root: Path) -> None:
    # The process that forks the commands of the tests is there once there was one.
    subprocess.run([sys.executable, "-m", "watchroom_cli.main", "--version"], check=True, capture_output=True)
    others = children()
    with team(root, 3) as (workspace, agents):
        simulation = Simulation(workspace, agents, seed=5, speed=0, apart=["tester"])

        def died_and_went_on() -> bool:
            if not simulation.summary().errors:
                for process in children() - others:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
            return bool(simulation.summary().errors) and simulation.summary().calls >= 40

        (error,) = run_until(workspace, simulation, died_and_went_on).errors
        assert error.startswith(f"tester: its process ended with status {-signal.SIGKILL}")
        assert workspace.verify() == []


def test_its_advice_when_it_dies_is_to_run_the_demo_again(root: Path) -> None:
    with team(root, 3) as (workspace, agents):
        simulation = Simulation(workspace, agents, seed=5, speed=0, apart=["tester"])

        def advice() -> set[str]:
            leases = workspace.journal.presence.all()
            return {each.resume for each in leases if each.process != os.getpid()}

        run_until(workspace, simulation, lambda: advice() == {f"watchroom demo {root}"})


def test_it_is_gone_when_the_demo_is_killed(root: Path) -> None:
    until = monotonic() + PATIENCE
    with Workspace.open(root, agents=roster(3)) as workspace:
        command = [sys.executable, "-m", "watchroom_cli.main", "demo", str(root), "--agents", "3"]
        running = subprocess.Popen([*command, "--headless", "--for", "600"], stdout=subprocess.DEVNULL)
        try:
            while not any(row.actor == "tester" for row in all_rows(workspace)):
                sleep(0.05)
                assert monotonic() < until
            (process,) = psutil.Process(running.pid).children()
        finally:
            running.kill()
            running.wait()
        assert psutil.wait_procs([process], PATIENCE)[1] == []
        assert workspace.verify() == []


@pytest.mark.parametrize("speed", ["0", "3"])
def test_the_demo_ends_without_a_warning(tmp_path: Path, speed: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "watchroom_cli.main", "demo"]
    done = subprocess.run(
        [*command, str(tmp_path / "demo"), "--headless", "--for", "1", "--speed", speed],
        capture_output=True,
        text=True,
        check=False,
    )
    # How long a callback takes is the machine's affair; asyncio's debug mode tells of it, too.
    told = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (done.returncode, told) == (0, [])
