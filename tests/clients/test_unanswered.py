"""A client counts as running while the system does not answer whether its process exists."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from clients.attached import PATIENCE, SESSION, told
from clients.test_waiting import ASKING, CALL, add_rules, approve, permission, requests, until
from platforms.unanswered import fail_ps, no_free_descriptors
from watchroom import Agent, Workspace
from watchroom.agents.clients import attendant, client_program
from watchroom.agents.clients.agent_claims import AgentClaims, WorkingClient, find_working
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.session import ClientSession
from watchroom.agents.clients.stopping import STOP, check_paused, stop_process
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL
from watchroom.platform import Platform
from watchroom.platform.linux import LinuxPlatform
from watchroom.serving.service import hooks
from watchroom.serving.service.hooks import answer_hook
from watchroom.serving.service.http import Connection, Peer
from watchroom.serving.service.workspaces import ServedWorkspace

POSIX: Final = """
import os, sys
found = os.uname()
os.uname = lambda: os.uname_result(("POSIX", *found[1:]))
os.defpath = sys.argv.pop(1)
from watchroom_cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The commands on a system that is not Linux. The first argument is the folder of its programs."""
ONLY_LISTS: Final = f'[ "$1" = -axww ] || exit 2\nexec {shutil.which("ps")} "$@"'
"""A program ps(1) that lists all processes, and says nothing about a single one."""


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


async def ask_service(served: ServedWorkspace, pid: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the service lets the hook with the process ``pid`` print about ``event``."""
    ours, theirs = socket.socketpair()
    connection = Connection(*await asyncio.open_connection(sock=ours))
    with theirs:
        fields = [("agent", "alice"), ("client", "claude"), ("age", "0")]
        theirs.sendall(client_program.request("POST", "/hook", fields, json.dumps(event).encode()))
        request = (await connection.read_request())._replace(peer=Peer(pid, os.getuid()))
        try:
            await answer_hook(served, request, connection)
        finally:
            await connection.close()
        stream = client_program.Stream(theirs, PATIENCE)
        assert client_program.read_head(stream) == 200
        said: Mapping[str, Any] = json.loads(client_program.read_chunks(stream))
    return said


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


async def test_a_question_waits_while_the_ancestors_of_its_hook_are_unknown(
    workspace: Workspace, client: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "BEAT_SECONDS", 0.01)
    add_rules(workspace, ASKING)
    served = ServedWorkspace(workspace)
    try:
        asking = asyncio.ensure_future(ask_service(served, client.pid, told("PreToolUse", **CALL)))
        await until(lambda: requests(workspace))
        with monkeypatch.context() as patch:
            runs = fail_ps(tmp_path, patch)
            await until(lambda: asking.done() or len(runs.read_text()) > 4)
            assert not asking.done()
            with pytest.raises(OSError, match="ps: 2"):
                await ask_service(served, client.pid, told("PreToolUse", **CALL))
            approve(workspace, "")
            said = await asyncio.wait_for(asking, PATIENCE)
        assert said["hookSpecificOutput"]["permissionDecision"] == "allow"
    finally:
        await served.close()


async def test_a_client_gets_an_agent_once_its_ancestors_are_known(
    workspace: Workspace, client: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.register([Agent("bob")])
    process = process_of(client, workspace.platform)
    served = attendant.Attendant(workspace, ["alice", "bob"], "claude", process)
    served.begin()
    try:
        with monkeypatch.context() as patch, workspace.messages.hand_over() as handover:
            fail_ps(tmp_path, patch)
            call = await served.answer(told("PreToolUse", **CALL), handover)
            prompt = await served.answer(told("UserPromptSubmit", prompt="Go"), handover)
        assert permission(call) == "deny"
        assert prompt is not None
        assert (prompt.said or {})["decision"] == "block"
        with workspace.messages.hand_over() as handover:
            await served.answer(told("UserPromptSubmit", prompt="Go"), handover)
            assert permission(await served.answer(told("PreToolUse", **CALL), handover)) == ""
        assert workspace.sessions.state("alice", SESSION).status == "running"
    finally:
        await served.close()


@pytest.mark.parametrize("program", ["exit 2", ONLY_LISTS], ids=["no list", "no single process"])
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit"])
def test_a_hook_whose_client_is_unknown_lets_nothing_through(
    root: Path,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    event: str,
) -> None:
    """Without a service, the hook itself looks for its client."""
    info = ClientInfo("claude", pid=os.getpid(), started=workspace.platform.process_start(os.getpid()))
    ClientSession(workspace, "alice", SESSION, info).record(PromptSubmitted("Go"))
    last = workspace.journal.last_seq()
    fail_ps(tmp_path, monkeypatch, program)
    command = [sys.executable, "-c", POSIX, str(tmp_path), "hook", str(root), "--agent", "alice"]
    given = json.dumps(told(event, prompt="Go", **CALL))
    ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE, check=True)
    said = json.loads(ended.stdout)
    refused = (
        said["hookSpecificOutput"]["permissionDecisionReason"] if "reason" not in said else said["reason"]
    )
    assert refused.startswith("Watchroom cannot be reached")
    assert workspace.sessions.state("alice", SESSION).status == "running"
    assert [row.tool for row in workspace.journal.rows(last)] == []


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
