"""A command that starts a client as a certain agent reserves the agent for the client's process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from watchroom import Agent, Workspace
from watchroom.agents.clients.agent_claims import AgentClaims, reserve_for_launch
from watchroom.agents.clients.configuration import HookProgram
from watchroom.agents.clients.launch import build_launch
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS


@pytest.fixture
def children() -> Iterator[list[int]]:
    """Two processes that this process started."""
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(words) as one, subprocess.Popen(words) as two:
        yield [one.pid, two.pid]
        one.kill()
        two.kill()


def claims(workspace: Workspace, pid: int) -> AgentClaims:
    process = ClientProcess(pid, workspace.platform.process_start(pid), workspace.platform)
    return AgentClaims(workspace, (), "codex", process)


def test_a_program_that_the_launched_process_starts_gets_the_reserved_agent(
    workspace: Workspace, children: list[int]
) -> None:
    workspace.register([Agent("helper")])
    reserve_for_launch(workspace, "helper", "codex")
    first, second = (claims(workspace, pid) for pid in children)
    assert first.claim(is_used=False) == "helper"
    assert first.claim("session") == "helper"
    # It is reserved once.
    assert second.claim() == "codex1"
    assert first.claim("session") == "helper"


def test_the_launched_process_itself_gets_the_reserved_agent(
    workspace: Workspace, children: list[int]
) -> None:
    workspace.register([Agent("helper")])
    reserve_for_launch(workspace, "helper", "codex")
    assert claims(workspace, os.getpid()).claim() == "helper"
    # A client that this client starts is another agent.
    assert claims(workspace, children[0]).claim() == "codex1"


def test_the_hooks_of_codex_have_the_same_text_for_each_agent() -> None:
    """Codex keeps one trusted text of each hook. Another text would end the supervision of running clients."""
    support, hook = LAUNCHED_CLIENTS["codex"], HookProgram(("python",))
    found = [
        build_launch("codex", support, hook, "/w", "/run", (), {}, agents).arguments
        for agents in ((), ("helper",))
    ]
    hooks = [[word for word in words if word.startswith("hooks.")] for words in found]
    assert hooks[0] == hooks[1] != []
    assert any("WATCHROOM_AGENT" in word and "helper" in word for word in found[1])
    # Without this variable, its server can use another service than its hooks.
    assert all(any('env_vars = ["XDG_RUNTIME_DIR", ' in word for word in words) for words in found)
