"""The conversation of RUN-flow over two processes: the agent in one, the person's dashboard in a real
terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pty_driver import Terminal
from runtime.weather import ANSWER

TESTS = Path(__file__).parents[1]
PATIENCE = 60


@contextmanager
def agent(root: Path, action: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "runtime.weather_process", str(root), action],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    ) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "killed and resumed"])
def test_a_person_approves_in_a_terminal_and_the_agent_goes_on(tmp_path: Path, is_restarted: bool) -> None:
    root = tmp_path / "team"
    with ExitStack() as stack:
        running = stack.enter_context(agent(root, "begin"))
        while not (root / ".watchroom/journal.db").exists():
            assert running.poll() is None
        command = [sys.executable, "-m", "watchroom_cli.main", "open", str(root)]
        terminal = stack.enter_context(Terminal(command, 120, 40))
        terminal.wait_for_text("1 needs you", timeout=PATIENCE)
        if is_restarted:
            running.send_signal(signal.SIGKILL)
            running.wait(PATIENCE)
        terminal.send("!")
        terminal.wait_for_text("city: Beijing", timeout=PATIENCE)
        terminal.send("a")
        terminal.wait_for_text("forecaster: approved", timeout=PATIENCE)
        if is_restarted:
            running = stack.enter_context(agent(root, "resume"))
        out, _ = running.communicate(timeout=PATIENCE)
        assert out.splitlines() == ["called with Beijing", f"done: {ANSWER}"]
        terminal.send("t")
        terminal.wait_for_text(ANSWER, timeout=PATIENCE)
