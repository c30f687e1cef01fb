"""Jumps to the tmux panes in which clients run, on a real server."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cli.running import as_typed
from pty_driver import Terminal
from trees import launched_client
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.client_traces import find_terminal
from watchroom.agents.clients.events import ClientInfo
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.clients.tmux_pane import TmuxPane, find_pane, read_pane
from watchroom.model import CONTINUE
from watchroom_tui.services.agent_terminal import Jump, jump_to_terminal
from watchroom_tui.terminal.tmux import attach_command, list_panes

PATIENCE = 60
CLIENT = "import sys, time; print('the terminal of ' + sys.argv[1], flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {CLIENT}"


def test_a_pane_is_found_by_the_environment_of_a_process() -> None:
    assert find_pane({"TMUX": "/tmp/s,1,0", "TMUX_PANE": "%3"}) == TmuxPane("/tmp/s", "%3")
    assert find_pane({"TMUX": "/tmp/a,b,1,0", "TMUX_PANE": "%3"}) == TmuxPane("/tmp/a,b", "%3")
    assert find_pane({"TMUX": "/tmp/s,1,0"}) is None
    assert find_pane({"TMUX_PANE": "%3"}) is None


@pytest.mark.parametrize(
    "fields",
    [
        None,
        "%1",
        ["/tmp/s"],
        ["/tmp/s", 1],
        [None, "%1"],
        ["/tmp/s", "%"],
        ["/tmp/s", "%1;kill-server"],
        ["/tmp/s", "%1\n"],
        ["/tmp/s", "%٣"],
        ["/tmp/s", "-t"],
        ["s", "%1"],
        ["-S/tmp/s", "%1"],
        ["/tmp/../etc/s", "%1"],
        ["/tmp/\x1b[31ms", "%1"],
        ["/" + "s" * 107, "%1"],
    ],
)
def test_fields_of_rows_that_name_no_pane_are_ignored(fields: Any) -> None:
    assert read_pane(fields) is None
    assert read_pane(["/tmp/s", "%1"]) == TmuxPane("/tmp/s", "%1")


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Server:
    """A tmux server, and a workspace in which alice works."""

    def __init__(self, socket: str, workspace: Workspace) -> None:
        self.socket = socket
        self._program = shutil.which("tmux") or "tmux"
        self.workspace = workspace
        self._sessions = 0

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            [self._program, "-S", self.socket, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def open_pane(self, *command: str) -> str:
        """Run ``command`` in a new window. Return its pane."""
        return self.tmux("new-window", "-d", "-P", "-F", "#{pane_id}", *command)

    def process_in(self, pane: str) -> int:
        return int(self.tmux("display-message", "-p", "-t", pane, "#{pane_pid}"))

    def start_client(self, program: str = CLIENT) -> tuple[str, int]:
        """Let a client of alice run in a new window. Return its pane and its process."""
        pane = self.open_pane(sys.executable, "-c", program, "alice")
        pid = self.process_in(pane)
        self.begin(pid)
        return pane, pid

    def begin(self, pid: int) -> str:
        """Begin a session of alice with the client in the process ``pid``. Return its path."""
        self._sessions += 1
        # A new process has the environment of tmux until it runs its program.
        wait_for(lambda: "TMUX_PANE" in (self.workspace.platform.environment(pid) or {}))
        info = ClientInfo("claude", pid=pid, started=self.workspace.platform.process_start(pid))
        return ClientSession(self.workspace, "alice", self.session, info).path

    @property
    def session(self) -> str:
        return f"session{self._sessions}"

    def jump(self, environ: dict[str, str]) -> Jump:
        return jump_to_terminal(self.workspace, f"alice/{self.session}", environ)

    @property
    def inside(self) -> dict[str, str]:
        """The environment of a dashboard in the first pane."""
        return {"TMUX": f"{self.socket},1,0", "TMUX_PANE": "%0"}


@pytest.fixture
def server(workspace: Workspace) -> Iterator[Server]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    # Sockets have short paths.
    with TemporaryDirectory(dir="/tmp") as folder:
        made = Server(str(Path(folder) / "s"), workspace)
        made.tmux("-f", "/dev/null", "new-session", "-d", "-n", "home", "-x", "120", "-y", "40", "sleep 600")
        yield made
        made.tmux("kill-server")


def test_the_pane_of_a_client_is_recorded_and_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    panes = [server.start_client()[0] for _ in range(2)]
    trace = find_terminal(server.workspace, f"alice/{server.session}")
    assert trace is not None
    assert trace.pane == TmuxPane(server.socket, panes[1])
    with Terminal(["tmux", "-S", server.socket, "attach"]) as terminal:
        terminal.wait_for_text("[0] 0:home*")
        for name, value in server.inside.items():
            monkeypatch.setenv(name, value)
        assert server.jump(server.inside) == Jump()
        terminal.wait_for_text("the terminal of alice")
        assert server.tmux("list-clients", "-F", "#{pane_id}") == panes[1]


def test_a_client_that_a_shell_runs_is_found_in_its_pane(server: Server) -> None:
    pane = server.open_pane("sh", "-c", f"{shlex.join([sys.executable, '-c', CLIENT, 'alice'])}; true")
    platform, shell = server.workspace.platform, server.process_in(pane)
    wait_for(lambda: platform.children(shell))
    server.begin(next(iter(platform.children(shell))))
    assert server.jump({}) == Jump("elsewhere", {"command": f"tmux -S {server.socket} attach -t {pane}"})


def test_the_command_for_another_server_shows_the_pane(server: Server) -> None:
    pane, _ = server.start_client()
    command = attach_command(TmuxPane(server.socket, pane))
    for environ in ({}, {"TMUX": "/tmp/other,1,0", "TMUX_PANE": "%0"}):
        assert server.jump(environ) == Jump("elsewhere", {"command": command})
    with Terminal(shlex.split(command)) as terminal:
        terminal.wait_for_text("the terminal of alice")


def test_a_pane_that_is_gone_is_reported(server: Server) -> None:
    pane, pid = server.start_client(STUBBORN)
    wait_for(lambda: "alice" in server.tmux("capture-pane", "-p", "-t", pane))
    server.tmux("kill-pane", "-t", pane)
    # Another program in the same place is not the client.
    server.open_pane("sleep", "600")
    assert server.jump(server.inside) == Jump("gone", {"pane": pane, "process": str(pid)})
    os.kill(pid, 9)
    wait_for(lambda: server.jump(server.inside).key == "no_client")


def test_a_client_outside_of_tmux_has_no_pane(server: Server) -> None:
    with subprocess.Popen([sys.executable, "-c", CLIENT, "x"], env={}, stdout=subprocess.PIPE) as client:
        started = server.workspace.platform.process_start(client.pid)
        info = ClientInfo("claude", pid=client.pid, started=started)
        session = ClientSession(server.workspace, "alice", "s", info)
        for environ in ({}, server.inside):
            assert jump_to_terminal(server.workspace, session.path, environ) == Jump("no_tmux")
        client.kill()
    assert jump_to_terminal(server.workspace, session.path, server.inside) == Jump("no_client")
    assert jump_to_terminal(server.workspace, "", server.inside) == Jump("no_client")


def test_rows_can_neither_choose_the_program_nor_the_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane, _ = server.start_client()
    tool = tmp_path / "bin" / "tmux"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    path = f"alice/{server.session}"
    began = server.workspace.journal.version("session", path, 1)
    assert began is not None
    plain = tmp_path / "no-socket"
    plain.write_text("")
    for socket in (str(plain), "/dev/null", str(tmp_path / "missing")):
        detail = {**began.detail, "tmux": [socket, pane]}
        server.workspace.session_zone.note("alice", CONTINUE, path, "", detail)
        assert server.jump(server.inside).key == "failed"
    server.workspace.session_zone.note("alice", CONTINUE, path, "", {**began.detail, "machine": "elsewhere"})
    assert server.jump(server.inside) == Jump("other_machine", {"machine": "elsewhere"})
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow(8)
def test_a_key_on_the_dashboard_jumps_to_the_client(server: Server) -> None:
    pane, _ = server.start_client()
    with Terminal(["tmux", "-S", server.socket, "attach"]) as terminal:
        terminal.wait_for_text("[0] 0:home*")
        opened = as_typed("open", str(server.workspace.root), "--language", "en")
        server.tmux("new-window", "-n", "board", shlex.join(opened))
        terminal.wait_for_text("watchroom", timeout=PATIENCE)
        terminal.wait_for_text("alice", timeout=PATIENCE)
        terminal.send("2")
        terminal.wait_for_text("0 steps", timeout=PATIENCE)
        terminal.send("J")
        terminal.wait_for_text("the terminal of alice", timeout=PATIENCE)
        assert server.tmux("list-clients", "-F", "#{pane_id}") == pane


def test_panes_are_listed_with_their_processes(server: Server) -> None:
    assert list_panes(server.socket) == {"%0": server.process_in("%0")}


@pytest.mark.slow(8)
def test_a_client_that_a_person_starts_in_a_pane_is_found_there(
    server: Server, tmp_path: Path, service: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="a\n")
    program = tmp_path / "programs" / "claude"
    program.parent.mkdir()
    words = shlex.join([sys.executable, launched_client.__file__])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    runtime = os.environ["XDG_RUNTIME_DIR"]
    started = ["env", f"PATH={path}", f"XDG_RUNTIME_DIR={runtime}", *as_typed("claude")]
    pane = server.open_pane("-c", str(repository.folder), shlex.join(started))
    wait_for(lambda: '"pid"' in server.tmux("capture-pane", "-p", "-t", pane))
    event = {"hook_event_name": "SessionStart", "session_id": "one", "cwd": str(repository.folder)}
    server.tmux("send-keys", "-t", pane, "-l", json.dumps(event))
    server.tmux("send-keys", "-t", pane, "Enter")
    wait_for(lambda: "[[0," in server.tmux("capture-pane", "-p", "-t", pane))
    with Workspace.open(repository.root, create=False) as workspace:
        session = next(row.path for row in workspace.journal.rows(0, limit=1000) if row.zone == "session")
        trace = find_terminal(workspace, session)
        assert trace is not None
        assert trace.pane == TmuxPane(server.socket, pane)
        assert jump_to_terminal(workspace, session, {}).values["command"].endswith(f" -t {pane}")
