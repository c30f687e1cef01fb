"""The panes of tmux in which clients run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from watchroom_tui.terminal.tmux import TmuxPane, find_pane, is_in_server, select_pane


def test_a_pane_is_found_by_the_environment_of_a_process() -> None:
    assert find_pane({"TMUX": "/tmp/s,1,0", "TMUX_PANE": "%3"}) == TmuxPane("/tmp/s", "%3")
    assert find_pane({"TMUX": "/tmp/s,1,0"}) is None
    assert find_pane({"TMUX_PANE": "%3"}) is None
    assert find_pane({"TMUX": "/tmp/s,1,0", "TMUX_PANE": "-x"}) is None
    assert is_in_server(TmuxPane("/tmp/s", "%3"), {"TMUX": "/tmp/s,1,0"})
    assert not is_in_server(TmuxPane("/tmp/s", "%3"), {})


@pytest.fixture
def server() -> Iterator[str]:
    """The socket of a tmux with two windows, the second of which has two panes."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    # Sockets have short paths.
    with TemporaryDirectory(dir="/tmp") as folder:
        socket = str(Path(folder) / "s")
        tmux(socket, "-f", "/dev/null", "new-session", "-d", "sleep 60")
        tmux(socket, "new-window", "sleep 60")
        tmux(socket, "split-window", "sleep 60")
        yield socket
        tmux(socket, "kill-server")


def tmux(socket: str, *words: str) -> str:
    done = subprocess.run(["tmux", "-S", socket, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_pane_is_selected_with_its_window(server: str) -> None:
    for pane in ("%0", "%2", "%1"):
        assert select_pane(TmuxPane(server, pane), {}) is None
        assert tmux(server, "display-message", "-p", "#{pane_id}") == pane


def test_a_pane_that_is_gone_cannot_be_selected(server: str) -> None:
    assert "%9" in (select_pane(TmuxPane(server, "%9"), {}) or "")
    assert select_pane(TmuxPane("/tmp/no-such-socket", "%0"), {})
