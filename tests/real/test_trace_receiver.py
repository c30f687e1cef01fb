"""A receiver of traces that people use understands the spans: Phoenix, from its package `arize-phoenix`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli.running import Captured, printed
from watchroom import Workspace
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientInfo,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal

PHOENIX = shutil.which("phoenix")
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
START_SECONDS = 180

pytestmark = [pytest.mark.real, pytest.mark.skipif(PHOENIX is None, reason="needs Phoenix")]


def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[str]:
    """Where a Phoenix of the test's own listens."""
    assert PHOENIX is not None
    port = free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [PHOENIX, "serve"],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            until(lambda: server.poll() is not None or answers(url), seconds=START_SECONDS)
            assert server.poll() is None
            yield url
        finally:
            server.terminate()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def spans_at(url: str) -> dict[str, Any]:
    """The spans that Phoenix has, by name."""
    answer = httpx.get(f"{url}/v1/projects/default/spans", params={"limit": 100})
    return {each["name"]: each for each in answer.json()["data"]} if answer.status_code == 200 else {}


def test_phoenix_sees_agents_models_and_tools(capsys: Captured, workspace: Workspace, phoenix: str) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", model="big"))
    for event in (
        PromptSubmitted("Write"),
        MessageCompleted("I write.", model="big", used=UsageTotal(1, 2, 3, 4)),
        CallStarted("c1", "Write", "{}"),
        CallFinished("c1", "no such folder", is_error=True),
        SessionEnded(),
    ):
        session.record(event)
    alice = workspace.tools("alice")
    arguments = {"filename": "a.md", "content": "mine"}
    alice.dispatch_tool_call("save_to_my_workspace", arguments, trace=alice.begin_trace(CALLER))
    root = workspace.root
    workspace.close()
    for _ in range(2):
        # What is sent twice is stored once.
        assert printed(capsys, "traces", root, "--endpoint", phoenix).startswith("Spans sent: 4,")
    until(lambda: len(spans_at(phoenix)) == 4)
    answer = httpx.get(f"{phoenix}/v1/projects/default/spans", params={"limit": 100})
    assert len(answer.json()["data"]) == 4
    spans = spans_at(phoenix)
    assert {name: each["span_kind"] for name, each in spans.items()} == {
        "invoke_agent alice": "AGENT",
        "chat big": "LLM",
        "execute_tool Write": "TOOL",
        "tools/call save_to_my_workspace": "TOOL",
    }
    turn, chat, call = spans["invoke_agent alice"], spans["chat big"], spans["execute_tool Write"]
    assert chat["parent_id"] == call["parent_id"] == turn["context"]["span_id"]
    assert (call["status_code"], chat["status_code"]) == ("ERROR", "UNSET")
    read = chat["attributes"]
    assert (read["llm.provider"], read["llm.model_name"], read["session.id"]) == (
        "anthropic",
        "big",
        "alice/s-1",
    )
    assert (read["llm.token_count.prompt"], read["llm.token_count.completion"]) == (8, 2)
    assert spans["tools/call save_to_my_workspace"]["parent_id"] == "b7ad6b7169203331"
