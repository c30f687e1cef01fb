"""Short runs of the commands that docs/reliability.md rests on, each as its own process with the seed of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from effort import seed

pytestmark = pytest.mark.real

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 280


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments, "--seed", str(seed(1) % 10**6)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_acknowledged_is_lost_in_a_round_of_torture() -> None:
    """Eight workers, a society, an attached agent and two dashboards, killed, stopped and given disk errors."""
    assert run("torture", "--journal", "sqlite", "--rounds", "1", "--minutes", "2").startswith("sqlite: ")


@pytest.mark.parametrize("target", ["calls", "documents", "hooks", "boards", "service"])
def test_random_inputs_are_answered_or_refused(target: str) -> None:
    assert f"| {target} |" in run("fuzz", "--target", target, "--inputs", "500")


def test_attached_clients_lose_nothing_while_everything_of_theirs_is_killed() -> None:
    """Their service, relays and hooks; and no call is allowed that nobody allowed."""
    assert "nothing is wrong" in run("attached", "--kills", "60", "--agents", "4")
