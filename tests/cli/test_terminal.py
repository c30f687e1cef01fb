"""The dashboard without a terminal, and when its terminal goes away."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.running import as_typed, spawned
from pty_driver import Terminal
from watchroom import Workspace
from watchroom_tui.terminal.session import WatchedOutput

pytestmark = pytest.mark.slow(7)

PATIENCE = 30
COMMANDS = {
    "open": ("open", "{}"),
    "no command": ("{}",),
    "demo": ("demo", "{}-new"),
    "task": ("task", "Build it.", "--workspace", "{}-new", "--simulate"),
}
INSTEAD = {
    "open": "watchroom show",
    "no command": "watchroom show",
    "demo": "--headless",
    "task": "--headless",
}


def command(name: str, root: Path) -> list[str]:
    return [each.format(root) for each in COMMANDS[name]]


@pytest.fixture
def team(root: Path) -> Path:
    Workspace.open(root, agents=["alice"]).close()
    return root


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_terminal_nothing_is_begun_or_drawn(name: str, team: Path) -> None:
    before = sorted(team.parent.iterdir())
    ended = spawned(*command(name, team), given="")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert INSTEAD[name] in ended.stderr
    assert "\x1b" not in ended.stderr
    assert sorted(team.parent.iterdir()) == before


@pytest.mark.parametrize("missing", [0, 1, 2], ids=["input", "output", "error"])
def test_each_stream_has_to_be_a_terminal(missing: int, team: Path, tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    file = os.open(tmp_path / "out.txt", os.O_RDWR | os.O_CREAT)
    streams = [file if number == missing else terminal for number in range(3)]
    stdin, stdout, stderr = streams
    arguments = as_typed("open", str(team))
    ended = subprocess.run(
        arguments, stdin=stdin, stdout=stdout, stderr=stderr, timeout=PATIENCE, check=False
    )
    for each in (controller, terminal, file):
        os.close(each)
    assert ended.returncode == 2
    assert "\x1b" not in (tmp_path / "out.txt").read_text()


@contextmanager
def drawn(name: str, team: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a dashboard that has drawn something, and the only other end of its terminal."""
    controller, terminal = os.openpty()
    with subprocess.Popen(
        as_typed(*command(name, team)),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        # Without a controlling terminal, so that no signal reports its end.
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    ) as process:
        os.close(terminal)
        try:
            seen = b""
            while b"watchroom" not in seen:
                seen += os.read(controller, 65_536)
            yield process, controller
        finally:
            process.kill()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_that_is_closed_ends_the_dashboard(name: str, team: Path) -> None:
    with drawn(name, team) as (process, controller):
        os.close(controller)
        process.wait(PATIENCE)


def test_a_hangup_ends_the_dashboard_and_clears_the_screen(team: Path) -> None:
    with Terminal(as_typed("open", str(team)), 120, 40) as terminal:
        terminal.wait_for_text("alice", timeout=PATIENCE)
        os.kill(terminal.pid, signal.SIGHUP)
        assert terminal.wait(PATIENCE) == 0
        assert b"\x1b[?1049l" in terminal.raw()


def test_nothing_is_written_after_a_failed_write() -> None:
    reader, writer = os.pipe()
    failures: list[bool] = []
    with os.fdopen(writer, "w") as file:
        output = WatchedOutput(file, lambda: failures.append(True))
        output.write("frame")
        output.flush()
        os.close(reader)
        for _ in range(3):
            output.write("frame")
            output.flush()
        assert failures == [True]
        # The buffer of the file must still be written somewhere.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), writer)


def test_a_hangup_together_with_sigcont_ends_the_dashboard(team: Path) -> None:
    """As from tmux when its server ends: the driver starts again, and must not leave a thread behind."""
    with Terminal(as_typed("open", str(team)), 120, 40) as terminal:
        terminal.wait_for_text("alice", timeout=PATIENCE)
        os.kill(terminal.pid, signal.SIGCONT)
        os.kill(terminal.pid, signal.SIGHUP)
        os.kill(terminal.pid, signal.SIGCONT)
        assert terminal.wait(PATIENCE) == 0


def test_the_keys_work_again_after_it_was_suspended(team: Path) -> None:
    with Terminal(as_typed("open", str(team)), 120, 40) as terminal:
        terminal.wait_for_text("alice", timeout=PATIENCE)
        for _ in range(2):
            os.kill(terminal.pid, signal.SIGTSTP)
            _, status = os.waitpid(terminal.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            begun = terminal.mark()
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.wait_for_bytes(b"\x1b[?1049h", since=begun, timeout=PATIENCE)
        # Keys typed while the terminal is set up are dropped, as before the first screen.
        terminal.wait_until_idle()
        terminal.send("2")
        terminal.wait_for_text("Session", timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0


def test_one_thread_reads_keys_after_sigcont_without_a_stop(team: Path) -> None:
    with Terminal(as_typed("open", str(team)), 120, 40) as terminal:
        terminal.wait_for_text("alice", timeout=PATIENCE)
        begun = terminal.mark()
        for _ in range(5):
            os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_for_bytes(b"\x1b[?1049h", since=begun, timeout=PATIENCE)
        # Keys typed while the terminal is set up are dropped, as before the first screen.
        terminal.wait_until_idle()
        terminal.send("2")
        terminal.wait_for_text("Session", timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0


def test_init_in_a_terminal_names_the_next_step(tmp_path: Path) -> None:
    with Terminal(as_typed("init", str(tmp_path / "team"), "--agent", "alice")) as terminal:
        terminal.wait_for_text("attach claude", timeout=PATIENCE)
