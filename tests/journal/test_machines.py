"""Three machines with a checkout each and nothing else in common: one is frozen, one is lost, nothing else is.

They are processes; WATCHROOM_MACHINES_SECONDS says how long their agents work (default: some seconds), more of
them and as fast as they can from a minute on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final

import psycopg
import pytest
from watchroom import Workspace
from watchroom.kernel.journal.postgres.side_stores import LEASE_SECONDS, LOST_SECONDS

pytestmark = [pytest.mark.postgres, pytest.mark.slow(14)]
SECONDS: Final = float(os.environ.get("WATCHROOM_MACHINES_SECONDS", "3"))
AGENTS_EACH, PAUSE = (10, "0") if SECONDS >= 60 else (3, "0.3")
PATIENCE: Final = 60.0
TESTS: Final = Path(__file__).parent.parent


class Machine:
    """A machine on which these ``agents`` work. ``acknowledged``: who wrote which line where, as which version."""

    def __init__(self, url: str, checkout: Path, agents: list[str]) -> None:
        self.checkout = checkout
        self.acknowledged: list[tuple[str, str, str, int]] = []
        self._ready = Event()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "journal.machine", url, str(checkout), PAUSE, *agents],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TESTS,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line == "ready\n":
                self._ready.set()
            elif line.endswith("\n"):
                # A line that was cut off acknowledges nothing.
                self.acknowledged.append(tuple(json.loads(line)))

    def wait_until_ready(self) -> None:
        assert self._ready.wait(PATIENCE)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        # It lays out what all the machines have written meanwhile, and has fallen behind where they were many.
        assert self.process.wait(PATIENCE + SECONDS) == 0
        self._close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._close()

    def _close(self) -> None:
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


def seconds_until(holds: Callable[[], bool], workspace: Workspace) -> float:
    """How long it took until ``holds``; it is asked after each row, and at least ten times a second."""
    began = monotonic()
    changes = workspace.journal.changes()
    while not holds():
        assert monotonic() - began < PATIENCE + SECONDS
        changes.wait(0.1)
    changes.close()
    return monotonic() - began


def wait_until_disconnected(url: str, lease: str) -> None:
    """Wait until the server has closed the connection of ``lease``, which it notices late on a busy machine."""
    connected = "SELECT FROM watchroom.presences JOIN pg_stat_activity ON pid = backend WHERE id = %s"
    until = monotonic() + PATIENCE
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(connected, (lease,)).fetchone() is not None:
            assert monotonic() < until
            sleep(0.02)


def test_three_machines_share_a_workspace(new_database: Callable[[], str], tmp_path: Path) -> None:
    url = new_database()
    teams = [[f"agent{machine}{each}" for each in range(AGENTS_EACH)] for machine in range(3)]
    with Workspace.open(
        url, [agent for team in teams for agent in team], checkout=tmp_path / "watcher"
    ) as watcher:
        machines = [Machine(url, tmp_path / f"machine{number}", team) for number, team in enumerate(teams)]
        for machine in machines:
            machine.wait_until_ready()
        seconds_until(lambda: all(machine.acknowledged for machine in machines), watcher)
        alive = {each.process: each.id for each in watcher.journal.presence.all() if each.is_alive}
        leases = [alive[machine.process.pid] for machine in machines]

        def is_alive(number: int) -> bool:
            return any(each.id == leases[number] and each.is_alive for each in watcher.journal.presence.all())

        machines[2].kill()
        wait_until_disconnected(url, leases[2])
        assert seconds_until(lambda: not is_alive(2), watcher) < LOST_SECONDS + 3
        # Its agents go on elsewhere, in a checkout of their own.
        machines.append(Machine(url, tmp_path / "machine3", teams[2]))
        machines[1].process.send_signal(signal.SIGSTOP)
        try:
            assert seconds_until(lambda: not is_alive(1), watcher) < LEASE_SECONDS + 3
            # Nobody waits for it.
            before = len(machines[0].acknowledged)
            seconds_until(lambda: len(machines[0].acknowledged) > before, watcher)
        finally:
            machines[1].process.send_signal(signal.SIGCONT)
        until = monotonic() + SECONDS
        seconds_until(lambda: monotonic() > until, watcher)
        for machine in (machines[0], machines[1], machines[3]):
            machine.end()
        acknowledged = [each for machine in machines for each in machine.acknowledged]
        journal = watcher.journal
        for agent, line, path, version in acknowledged:
            is_shared = path.startswith("shared/")
            row = (
                journal.version("collab", path, version)
                if is_shared
                else journal.version("private", f"{agent}/{path}", version)
            )
            assert row is not None, (agent, line, path, version)
            assert row.actor == agent
            assert (journal.content(row.seq) or "").endswith(line)
        # Whatever stands in a shared file was written once, and by who read what stood there before.
        heads = [*journal.heads("collab")]
        for head in heads:
            lines = (journal.content(head.seq) or "").splitlines()
            assert len(lines) == head.version
            assert max(Counter(lines).values()) <= 2  # agents of the lost machine counted anew
        assert journal.problems() == []
    shown = []
    for checkout in (tmp_path / "watcher", *(machine.checkout for machine in machines)):
        with Workspace.open(checkout, create=False) as workspace:
            assert workspace.verify() == []
            folders = [checkout / "collaborative/current", checkout / "agents"]
            files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
            shown.append({path.relative_to(checkout): path.read_text() for path in files})
    assert all(each == shown[0] for each in shown)
    assert shown[0]
