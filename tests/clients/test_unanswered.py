"""A client counts as running while the system does not answer whether its process exists."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.attached import SESSION, told
from clients.test_waiting import until
from platforms.unanswered import fail_ps, no_free_descriptors
from watchroom import Agent, Workspace
from watchroom.agents.clients import attendant
from watchroom.agents.clients.agent_claims import AgentClaims, WorkingClient, find_working
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.clients.stopping import STOP, check_paused, stop_process
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL
from watchroom.platform import Platform
from watchroom.platform.linux import LinuxPlatform


@pytest.fixture
def client() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def platform() -> Platform:
    """Return a platform that asks ps(1)."""
    return Platform()


@pytest.fixture
def workspace(root: Path, platform: Platform) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice"], platform=platform) as opened:
        yield opened


def process_of(client: subprocess.Popen[bytes], platform: Platform) -> ClientProcess:
    return ClientProcess(client.pid, platform.process_start(client.pid), platform)


async def test_a_session_goes_on_until_its_client_has_ended_for_certain(
    workspace: Workspace, client: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendant, "_LOOK_SECONDS", (0.01, 0.01))
    process = process_of(client, workspace.platform)
    served = attendant.Attendant(workspace, ["alice"], "claude", process)
    served.begin()
    try:
        with workspace.messages.hand_over() as handover:
            await served.answer(told("UserPromptSubmit", prompt="Go"), handover)
        with monkeypatch.context() as patch:
            runs = fail_ps(tmp_path, patch)
            await until(lambda: len(runs.read_text()) > 4)
            assert workspace.sessions.state("alice", SESSION).status == "running"
        client.kill()
        client.wait()
        await asyncio.wait_for(served.wait_gone(), 20)
        assert workspace.sessions.state("alice", SESSION).status == "cancelled"
    finally:
        await served.close()


def test_a_stop_is_not_proven(
    workspace: Workspace, client: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = process_of(client, workspace.platform)
    info = ClientInfo("claude", pid=process.pid, started=process.started)
    session = ClientSession(workspace, "alice", "s-1", info)
    session.record(PromptSubmitted("Go"))
    cause = workspace.session_zone.control(CallContext("human:ann", CANCEL), "alice", None, "")
    fail_ps(tmp_path, monkeypatch)
    proof = stop_process(workspace, session.path, process, cause, patience=0)
    (row,) = [each for each in workspace.journal.rows() if each.tool == STOP]
    assert (proof.is_proven, row.detail["is_gone"]) == (False, False)
    assert f"process {client.pid} is still running" in proof.how


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists enough to prove a stop")
@pytest.mark.parametrize("platform", [LinuxPlatform()])
def test_processes_that_are_not_listed_are_no_proof(
    workspace: Workspace, client: subprocess.Popen[bytes]
) -> None:
    process = process_of(client, workspace.platform)
    info = ClientInfo("claude", pid=process.pid, started=process.started)
    ClientSession(workspace, "alice", "s-1", info).record(SessionEnded())
    client.kill()
    client.wait()
    with no_free_descriptors():
        assert not check_paused(workspace, "alice").is_proven
    assert check_paused(workspace, "alice").is_proven


def test_a_client_keeps_its_agent(
    workspace: Workspace,
    client: subprocess.Popen[bytes],
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspace.register([Agent("helper")])
    AgentClaims(workspace, (), "codex", process_of(client, workspace.platform)).reserve("helper")
    fail_ps(tmp_path, monkeypatch)
    # This process does not know yet when the machine started.
    assert find_working(str(root), Platform()) == [WorkingClient("helper", client.pid)]
    client.kill()
    client.wait()
    assert find_working(str(root), Platform()) == []
