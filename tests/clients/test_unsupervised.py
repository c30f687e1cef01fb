"""A client that works without hooks is shown as unsupervised. One that only takes its time is not."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from clients.attached import HELLO, SESSION, relay, told, wait_for
from clients.attending import attending, report, write_lines
from runtime.scripted import until
from service_process import running_service
from watchroom import Workspace
from watchroom.agents.clients import attendant, transcripts
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.attendant import Attendant
from watchroom.features.sessions.rows import is_unsupervised
from watchroom.model import Row, timestamp

CALL = {"tool_name": "Bash", "tool_input": {"command": "make"}}
OWN_CALL = {"tool_name": "mcp__watchroom__list_files", "tool_input": {}}
CLIENTS = pytest.mark.parametrize("client", ["claude", "codex"])


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service looks often."""
    monkeypatch.setattr(attendant, "_LOOK_SECONDS", (0.02, 0.02))


def line_of(client: str, content: dict[str, Any], seconds: float = 1) -> dict[str, Any]:
    """A line of a transcript that is written in so many ``seconds``."""
    about = {"timestamp": timestamp(time.time_ns() + int(seconds * 1e9))}
    if client == "codex":
        return {**about, "type": "response_item", "payload": content}
    kind = "user" if content["type"] == "tool_result" else "assistant"
    used = {"usage": {"input_tokens": 10, "output_tokens": 2}} if kind == "assistant" else {}
    message = {"id": f"m-{content.get('text')}", "model": "m", "content": [content], **used}
    return {**about, "type": kind, "message": message}


def said(client: str, text: str) -> dict[str, Any]:
    if client == "claude":
        return line_of(client, {"type": "text", "text": text})
    content = [{"type": "output_text", "text": text}]
    return line_of(client, {"type": "message", "role": "assistant", "content": content})


def call(
    client: str, own: str, tool: str = "exec_command", *, seconds: float = 1, is_error: bool = False
) -> list[dict[str, Any]]:
    """The lines of a call that ended."""
    if client == "claude":
        ended = {"type": "tool_result", "tool_use_id": own, "content": "ok", "is_error": is_error}
        return [line_of(client, ended, seconds)]
    made = {"type": "function_call", "name": tool, "call_id": own, "arguments": "{}"}
    ended = {"type": "function_call_output", "call_id": own, "output": "ok"}
    return [line_of(client, each, seconds) for each in (made, ended)]


class Case:
    """A client with a transcript, which has reported its prompt."""

    def __init__(self, workspace: Workspace, served: Attendant, client: str, transcript: Path) -> None:
        self.workspace = workspace
        self.served = served
        self._client = client
        self._transcript = transcript
        self._count = 0

    async def hook(self, name: str, **more: object) -> None:
        event = told(name, transcript_path=str(self._transcript), **more)
        await report(self.workspace, self.served, event)

    async def is_read(self, *lines: dict[str, Any]) -> None:
        """Write lines, and wait until they have been read."""
        self._count += 1
        text = f"Message {self._count}"
        write_lines(self._transcript, *lines, said(self._client, text))
        await until(lambda: text in self._texts())

    def _texts(self) -> list[str]:
        return [each.content for each in self.workspace.sessions.state("alice", SESSION).messages]

    def unsupervised(self) -> list[Row]:
        return [row for row in self.workspace.journal.rows(limit=1000) if is_unsupervised(row)]


@CLIENTS
async def test_calls_that_no_hook_has_reported_show_that_hooks_do_not_run(
    workspace: Workspace, tmp_path: Path, client: str
) -> None:
    async with attending(workspace, client) as served:
        case = Case(workspace, served, client, tmp_path / "t.jsonl")
        await case.hook("UserPromptSubmit", prompt="Go")
        await case.is_read(*call(client, "c1"))
        assert not case.unsupervised()
        await case.is_read(*call(client, "c2"))
        await until(lambda: bool(case.unsupervised()))
        await case.hook("PreToolUse", tool_use_id="c3", **CALL)
        newest = workspace.journal.head("session", f"alice/{SESSION}")
        assert newest is not None
        assert not is_unsupervised(newest)


@CLIENTS
@pytest.mark.parametrize("by", ["the service", "hooks alone"])
async def test_a_client_that_thinks_for_long_is_supervised(
    workspace: Workspace, tmp_path: Path, client: str, by: str
) -> None:
    async with attending(workspace, client) as served:
        case = Case(workspace, served, client, tmp_path / "t.jsonl")
        await case.hook("UserPromptSubmit", prompt="Go")
        other = Attachment(workspace, "alice", client)
        for own in ("c1", "c2"):
            if by == "the service":
                await case.hook("PreToolUse", tool_use_id=own, **CALL)
            else:
                await other.handle(told("PreToolUse", tool_use_id=own, **CALL))
        await case.is_read()
        await case.is_read()
        await case.is_read(*call(client, "c1"))
        await case.is_read(*call(client, "c2"))
        await case.is_read()
        assert not case.unsupervised()


@CLIENTS
async def test_a_hook_after_a_call_without_one_shows_that_hooks_run(
    workspace: Workspace, tmp_path: Path, client: str
) -> None:
    async with attending(workspace, client) as served:
        case = Case(workspace, served, client, tmp_path / "t.jsonl")
        await case.hook("UserPromptSubmit", prompt="Go")
        await case.is_read(*call(client, "c1"))
        await case.hook("PostToolUse", tool_use_id="c1", tool_response="ok", **CALL)
        await case.is_read(*call(client, "c2"))
        await case.is_read()
        assert not case.unsupervised()


@pytest.mark.parametrize(
    ("client", "tool"), [("codex", "write_stdin"), ("codex", "update_plan"), ("claude", "")]
)
async def test_calls_that_a_client_reports_to_no_hook_show_nothing(
    workspace: Workspace, tmp_path: Path, client: str, tool: str
) -> None:
    """Some tools have no hooks, and clients refuse some calls themselves."""
    async with attending(workspace, client) as served:
        case = Case(workspace, served, client, tmp_path / "t.jsonl")
        await case.hook("UserPromptSubmit", prompt="Go")
        for own in ("c1", "c2", "c3"):
            await case.is_read(*call(client, own, tool, is_error=True))
        assert not case.unsupervised()


@CLIENTS
async def test_calls_from_before_a_session_was_resumed_show_nothing(
    workspace: Workspace, tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client may have worked without Watchroom before."""
    transcript = tmp_path / "t.jsonl"
    old = [line for number in range(20) for line in call(client, f"c{number}", seconds=-60)]
    write_lines(transcript, *old)
    monkeypatch.setattr(transcripts, "_MAX_READ_BYTES", transcript.stat().st_size // 5)
    async with attending(workspace, client) as served:
        case = Case(workspace, served, client, transcript)
        await case.hook("SessionStart", source="resume")
        await case.is_read()
        assert not case.unsupervised()


async def test_calls_at_its_server_without_hooks_show_that_hooks_do_not_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    async with attending(workspace) as served:
        case = Case(workspace, served, "claude", tmp_path / "t.jsonl")
        served.notice_activity()
        served.notice_activity()
        await until(lambda: bool(case.unsupervised()))


async def test_calls_at_its_server_that_hooks_have_reported_are_supervised(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A client may make several calls at a time, and repeat one with a person's answer."""
    async with attending(workspace) as served:
        case = Case(workspace, served, "claude", tmp_path / "t.jsonl")
        await case.hook("UserPromptSubmit", prompt="Go")
        for own in ("c1", "c2"):
            await case.hook("PreToolUse", tool_use_id=own, **OWN_CALL)
        for _ in range(4):
            served.notice_activity()
            await case.is_read()
        for own in ("c1", "c2"):
            await case.hook("PostToolUse", tool_use_id=own, tool_response="ok", **OWN_CALL)
        served.notice_activity()
        await case.is_read()
        assert not case.unsupervised()


def test_only_calls_at_a_server_count(root: Path, workspace: Workspace) -> None:
    def request(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        if "id" in message:
            while json.loads(server.stdout.readline()).get("id") != message["id"]:
                pass

    def unsupervised() -> list[Row]:
        return [row for row in workspace.journal.rows(limit=1000) if is_unsupervised(row)]

    asked = {"tools/list": {}, "resources/read": {"uri": "watchroom://files"}}
    params = {"name": "list_files", "arguments": {}}
    with running_service(), relay(root) as server:
        request(server, HELLO)
        request(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, (method, given) in enumerate([*asked.items()] * 2, 2):
            request(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": given})
        for number in (8, 9):
            assert not unsupervised()
            request(server, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        wait_for(workspace, is_unsupervised)
