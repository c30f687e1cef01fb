"""An agent is stopped for certain, and what shows it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from watchroom import Workspace
from watchroom.agents.clients.client_traces import find_process
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.clients.stopping import STOP, check_paused, end_agents, stop_client, stop_process
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL, CONTINUE, Row
from watchroom.platform import Platform

pytestmark = pytest.mark.slow(4)

PATIENCE = 30
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def client() -> Iterator[subprocess.Popen[str]]:
    """A program that does not heed SIGINT."""
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def sees_processes(workspace: Workspace) -> bool:
    """Whether this platform lists enough to prove that nothing is left of a client."""
    return bool(workspace.platform.process_scope(os.getpid()).namespace)


def test_an_attached_client_is_ended_by_signals(workspace: Workspace, client: subprocess.Popen[str]) -> None:
    info = ClientInfo("claude", pid=client.pid, started=workspace.platform.process_start(client.pid))
    session = ClientSession(workspace, "alice", "s-1", info)
    session.record(PromptSubmitted("Loop for ever"))
    proof = stop_client(workspace, "alice", "human:ann", patience=PATIENCE)
    assert (proof.agent, proof.is_proven) == ("alice", sees_processes(workspace))
    assert client.wait(PATIENCE) == -signal.SIGTERM
    (row,) = [each for each in workspace.journal.rows() if each.tool == STOP]
    assert list(row.detail["signals"]) == ["SIGINT", "SIGTERM"]  # type: ignore[arg-type]  # a list
    assert (row.detail["is_gone"], row.detail["by"]) == (True, "human:ann")
    assert str(row.seq) in proof.how


def test_what_another_process_did_to_end_it_is_told(
    workspace: Workspace, client: subprocess.Popen[str]
) -> None:
    process = ClientProcess(client.pid, workspace.platform.process_start(client.pid), workspace.platform)
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    cause = workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    first = stop_process(workspace, session.path, process, cause)
    second = stop_process(workspace, session.path, process, cause)
    (row,) = [each for each in workspace.journal.rows() if each.tool == STOP]
    for proof in (first, second):
        assert "SIGTERM" in proof.how
        assert f"row {row.seq}" in proof.how


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), sys.exit()))
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_session_that_has_ended_is_no_proof_while_its_client_is_there(workspace: Workspace) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        info = ClientInfo("claude", pid=client.pid, started=workspace.platform.process_start(client.pid))
        session = ClientSession(workspace, "alice", "s-1", info)
        session.record(PromptSubmitted("Loop for ever"))

        def end_session(row: Row) -> None:
            session.record(SessionEnded("cancelled"))

        end = workspace.background.subscribe(("alice",), end_session)
        (proof,) = end_agents(workspace, ["alice"], "human:ann", patience=PATIENCE)
        end()
        assert proof.is_proven == sees_processes(workspace)
        assert not ClientProcess(client.pid, info.started, workspace.platform).is_alive


def test_another_process_with_its_number_is_left_alone(
    client: subprocess.Popen[str], platform: Platform
) -> None:
    other = ClientProcess(client.pid, platform.process_start(client.pid) + 1, platform)
    assert not other.send_signal(signal.SIGTERM)
    assert other.wait_gone(0)
    assert client.poll() is None


def test_a_session_that_ends_itself_is_the_proof(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    session.record(PromptSubmitted("Go"))
    ending = Thread(target=session.record, args=(SessionEnded("cancelled"),))
    ending.start()
    proof = stop_client(workspace, "alice", "human:ann", patience=PATIENCE)
    ending.join()
    assert proof.is_proven
    assert session.status == "cancelled"


def test_one_that_does_not_answer_is_no_proof(workspace: Workspace) -> None:
    ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    assert not stop_client(workspace, "alice", "human:ann", patience=0).is_proven
    assert stop_client(workspace, "bob", "human:ann", patience=0).is_proven, "it has no running process"


def test_a_session_whose_client_is_not_known_is_no_proof(root: Path) -> None:
    """The process that took its newest step, a hook, has ended since; of the client that says nothing."""
    with Workspace.open(root, agents=["alice"]) as hook:
        ClientSession(hook, "alice", "s-1", ClientInfo("claude"), is_owner=False)
    with Workspace.open(root) as workspace:
        assert not stop_client(workspace, "alice", "human:ann", patience=0).is_proven
        assert not check_paused(workspace, "alice").is_proven


@pytest.mark.parametrize("is_owner", [False, True])
def test_a_resumed_session_is_that_of_the_client_that_resumed_it(
    workspace: Workspace, client: subprocess.Popen[str], is_owner: bool
) -> None:
    first = ClientInfo("claude", pid=client.pid, started=1.0)
    ClientSession(workspace, "alice", "s-1", first, is_owner=is_owner)
    assert find_process(workspace, "alice/s-1") == ClientProcess(client.pid, 1.0, workspace.platform)
    second = first._replace(started=workspace.platform.process_start(client.pid))
    for _ in range(2):
        ClientSession(workspace, "alice", "s-1", second, is_owner=is_owner)
    assert [row.tool for row in workspace.journal.rows()].count(CONTINUE) == 1
    assert not check_paused(workspace, "alice").is_proven
    proof = stop_client(workspace, "alice", "human:ann", patience=PATIENCE)
    assert proof.is_proven == sees_processes(workspace)
    assert client.wait(PATIENCE) == -signal.SIGTERM
