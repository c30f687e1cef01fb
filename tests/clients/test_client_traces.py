"""That an attached agent has stopped is said only where its processes are gone, as far as can be seen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from cli.running import Captured, as_typed, printed, run
from clients.attached import HELLO, PATIENCE, SESSION, hook_command, told, wait_for
from watchroom import Workspace
from watchroom.agents.clients.client_traces import GONE, find_trace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.clients.stopping import check_paused, end_agents, running_agents
from watchroom.platform import Platform, ProcessScope
from watchroom.platform.linux import LinuxPlatform

pytestmark = [
    pytest.mark.slow(4),
    pytest.mark.usefixtures("service"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read in /proc"),
]

CLIENT: Final = """
import json, os, signal, subprocess, sys

def detach(command, environment):
    # Forks twice and begins a session, as a daemon does.
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writes, str(os.getpid()).encode())
            os.close(writes)
            null = os.open(os.devnull, os.O_RDWR)
            for each in (0, 1, 2):
                os.dup2(null, each)
            os.execvpe(command[0], command, environment)
        os._exit(0)
    os.close(writes)
    os.wait()
    return int(os.read(reads, 20))

for line in sys.stdin:
    verb, given = json.loads(line)
    if verb == "hook":
        subprocess.run(given["command"], input=json.dumps(given["event"]).encode(), check=True)
        said = 0
    elif verb == "serve":
        server = subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        server.stdin.write(HELLO)
        server.stdin.flush()
        server.stdout.readline()
        said = server.pid
    elif verb == "start":
        said = subprocess.Popen(given, stdin=subprocess.DEVNULL, start_new_session=True).pid
    elif verb == "detach":
        said = detach(given["command"], given["environment"])
    print(said, flush=True)
"""
SLEEP: Final = ["sleep", "1000"]
PLACE: Final = {"TMUX_PANE": f"of-test-{os.getpid()}", "XDG_SESSION_ID": "of-test"}
"""The terminal of the client: other tests may leave processes meanwhile."""


class FakeClient(NamedTuple):
    """A program that starts other programs on command."""

    root: Path
    process: subprocess.Popen[str]

    def do(self, verb: str, given: object) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, given]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def hook(self, name: str, **more: object) -> None:
        self.do("hook", {"command": hook_command(self.root), "event": told(name, **more)})


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice", "bob"]) as opened:
        yield opened


@pytest.fixture
def client(root: Path, workspace: Workspace) -> Iterator[FakeClient]:
    """The client of alice, at work."""
    pipe = subprocess.PIPE
    code = CLIENT.replace("HELLO", repr(json.dumps(HELLO).encode() + b"\n"))
    environment = {**os.environ, **PLACE}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True, env=environment
    ) as process:
        try:
            fake = FakeClient(root, process)
            fake.hook("UserPromptSubmit", prompt="Go")
            yield fake
        finally:
            process.kill()


@contextmanager
def ended_at_last(pid: int) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_there(platform: Platform, pid: int) -> bool:
    return platform.process_start(pid) > 0


def wait_until_gone(platform: Platform, pid: int) -> None:
    assert platform.wait_ended(pid, platform.process_start(pid), PATIENCE)


def stop_all(capsys: Captured, root: Path, *more: str) -> tuple[int, dict[str, Any]]:
    status, out, _ = run(capsys, "stop", str(root), "--all", *more, "--yes", "--json")
    (proof,) = json.loads(out)
    return status, proof


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_end_of_a_session_is_not_believed_while_its_client_is_there(
    capsys: Captured, client: FakeClient, workspace: Workspace, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's own shell can report it."""
    client.hook("SessionEnd", reason="other")
    assert workspace.sessions.state("alice", SESSION).status == "done"
    assert running_agents(workspace) == ["alice"]
    status, proof = stop_all(capsys, client.root)
    assert (status, proof["is_proven"]) == (1, False)
    assert str(client.process.pid) in proof["how"]
    status, proof = stop_all(capsys, client.root, "--end")
    assert (status, proof["is_proven"]) == (0, True)
    assert client.process.wait(PATIENCE) == -signal.SIGINT
    assert "No agent" in printed(capsys, "stop", str(client.root), "--all", "--yes")


def test_the_end_of_a_session_whose_client_is_gone_is_believed(
    capsys: Captured, client: FakeClient, workspace: Workspace
) -> None:
    client.hook("SessionEnd", reason="other")
    client.process.kill()
    client.process.wait(PATIENCE)
    assert running_agents(workspace) == []
    assert check_paused(workspace, "alice").is_proven


ENVIRONMENTS: Final = {
    "inherited": {**os.environ, **PLACE},
    "marked": {"PATH": os.environ["PATH"], "WATCHROOM_AGENT": "alice", **PLACE},
    "marked as one of two": {"PATH": os.environ["PATH"], "WATCHROOM_AGENT": "alice,bob", **PLACE},
    "stripped": {**PLACE},
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
@pytest.mark.parametrize("is_ended", [False, True], ids=["running", "ended"])
def test_a_child_that_leaves_its_client_is_reported(
    capsys: Captured,
    client: FakeClient,
    workspace: Workspace,
    environment: dict[str, str],
    is_ended: bool,
) -> None:
    daemon = client.do("detach", {"command": ["/bin/sleep", "1000"], "environment": environment})
    with ended_at_last(daemon):
        if is_ended:
            client.hook("SessionEnd", reason="other")
        status, proof = stop_all(capsys, client.root, "--end")
        assert (status, proof["is_proven"]) == (1, False)
        assert f"{daemon} (sleep 1000)" in proof["how"]
        assert client.process.wait(PATIENCE) == -signal.SIGINT
        assert is_there(workspace.platform, daemon), "what only may belong to it is left alone"
        assert stop_all(capsys, client.root)[0] == 1, "it is not forgotten"
        os.kill(daemon, signal.SIGTERM)
        wait_until_gone(workspace.platform, daemon)
    assert check_paused(workspace, "alice").is_proven


@pytest.mark.parametrize("own", [{"WATCHROOM_AGENT": "bob,carol", **PLACE}, {"TMUX_PANE": "of another"}])
def test_a_process_of_another_agent_or_terminal_is_not_its(
    capsys: Captured, client: FakeClient, workspace: Workspace, own: dict[str, str]
) -> None:
    given = {"command": ["/bin/sleep", "1000"], "environment": own}
    daemon = client.do("detach", given)
    with ended_at_last(daemon):
        assert stop_all(capsys, client.root, "--end")[0] == 0


def test_children_of_a_client_end_with_it(client: FakeClient, workspace: Workspace) -> None:
    children = [client.do("start", SLEEP) for _ in range(2)]
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(ended_at_last(child))
        (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=PATIENCE)
        assert proof.is_proven
        assert not any(is_there(workspace.platform, child) for child in children)


IGNORING: Final = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"


def test_a_child_that_does_not_end_is_no_proof(client: FakeClient, workspace: Workspace) -> None:
    child = client.do("start", [sys.executable, "-c", IGNORING])
    with ended_at_last(child):
        # Its handler is set before it can be stopped.
        until = time.monotonic() + PATIENCE
        while not _ignores_term(child):
            assert time.monotonic() < until
        (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=1)
        assert not proof.is_proven
        assert str(child) in proof.how


def _ignores_term(pid: int) -> bool:
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigIgn" in each]
    return bool(int(line.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def test_what_was_seen_beneath_a_client_is_known_when_it_is_gone(
    client: FakeClient, workspace: Workspace
) -> None:
    """Killed, a client leaves children of which nothing says any more whose they were: its server does."""
    client.do("serve", as_typed("mcp", str(client.root), "--agent", "alice", "--client", "claude"))
    call = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1"}
    client.hook("PreToolUse", **call)
    given = ["/usr/bin/env", "-i", "/bin/sleep", "1000"]
    child = client.do("start", given)
    with ended_at_last(child):
        client.hook("PostToolUse", **call, tool_response="started")
        client.process.kill()
        gone = wait_for(workspace, lambda row: row.tool == GONE)
        wait_for(workspace, lambda row: row.seq > gone.seq and row.detail.get("status") == "cancelled")
        left = gone.detail["left"]
        assert isinstance(left, list)
        assert child in [each[0] for each in left if isinstance(each, list)]
        proof = check_paused(workspace, "alice")
        assert not proof.is_proven
        assert str(child) in proof.how


class OtherNamespace(LinuxPlatform):
    """As in a container."""

    def process_scope(self, pid: int) -> ProcessScope:
        return ProcessScope("pid:[1]", "/")


def test_a_client_that_cannot_be_seen_from_here_is_no_proof(root: Path, workspace: Workspace) -> None:
    with Workspace.open(root, platform=OtherNamespace()) as elsewhere:
        info = ClientInfo("claude", pid=1, started=elsewhere.platform.process_start(1) + 1)
        session = ClientSession(elsewhere, "alice", "s-1", info)
        session.record(PromptSubmitted("Go"))
        session.record(SessionEnded())
    assert find_trace(workspace, "alice/s-1") is not None
    assert running_agents(workspace) == ["alice"]
    (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=0)
    assert not proof.is_proven


def test_a_client_of_which_nothing_is_known_is_no_proof(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(SessionEnded())
    assert running_agents(workspace) == ["alice"]
    (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=0)
    assert not proof.is_proven


def test_a_session_of_ours_that_has_ended_is_believed(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    session.record(SessionEnded())
    assert running_agents(workspace) == []
