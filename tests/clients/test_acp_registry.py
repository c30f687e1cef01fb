"""The ACP registry: fetched only when asked, bounded, and none of its commands runs before a person allows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from cli.running import Captured, as_typed, misuse, printed_json, run
from hypothesis import given
from hypothesis import strategies as st
from watchroom import Workspace
from watchroom.agents.clients.acp_registry import (
    INDEX_URL,
    MAX_AGENTS,
    MAX_INDEX_BYTES,
    AgentIndex,
    AgentStart,
    choose_start,
    list_starts,
    parse_index,
    platform_name,
)
from watchroom.agents.clients.acp_registry_files import (
    IndexNotFetched,
    allow,
    fetch_index,
    index_path,
    is_allowed,
    read_index,
)
from watchroom.texts import LANGUAGES
from watchroom_cli.main import LANGUAGE_VARIABLE, OK

SCRIPTED: Final = Path(__file__).with_name("scripted_acp_agent.py")
PLATFORM: Final = "linux-x86_64"
PATIENCE: Final = 60


def entry(agent_id: str = "agent", **more: Any) -> dict[str, Any]:
    """Return an entry of the index."""
    known = {
        "id": agent_id,
        "name": "Agent",
        "version": "1.2.3",
        "description": "It codes",
        "distribution": {"npx": {"package": "@scope/agent@1.2.3", "args": ["--acp"]}},
    }
    return {**known, **more}


def index(*entries: Any) -> bytes:
    return json.dumps({"version": "1.0.0", "agents": [*entries]}).encode()


class Answers(ThreadingHTTPServer):
    """A server on this machine that answers each request with ``body``. ``asked``: the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = index(entry())
        self.status = 200
        self.asked: list[tuple[str, str]] = []


class Handler(BaseHTTPRequestHandler):
    server: Answers

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append((self.headers["Host"], self.path))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "https://elsewhere.example/")
        self.end_headers()
        try:
            self.wfile.write(self.server.body)
        except (BrokenPipeError, ConnectionResetError):
            # The client has read enough.
            return


class ToServer(httpx.AsyncHTTPTransport):
    """Sends requests to ``server``, whatever their address."""

    def __init__(self, server: Answers) -> None:
        super().__init__()
        self._server = server
        self.urls: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.urls.append(str(request.url))
        host, port = self._server.server_address[:2]
        request.url = request.url.copy_with(scheme="http", host=str(host), port=int(port))
        return await super().handle_async_request(request)


@pytest.fixture
def server() -> Iterator[Answers]:
    with Answers() as answers:
        serving = threading.Thread(target=answers.serve_forever)
        serving.start()
        yield answers
        answers.shutdown()
        serving.join()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("COLUMNS", "200")


def keep(*entries: Any) -> None:
    """Keep an index as if it had been fetched."""
    Path(index_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(index_path()).write_bytes(index(*entries))


def test_the_index_is_fetched_from_one_address_and_kept(server: Answers) -> None:
    assert read_index() is None
    transport = ToServer(server)
    fetched = fetch_index(transport)
    assert transport.urls == [INDEX_URL]
    assert server.asked == [("cdn.agentclientprotocol.com", "/registry/v1/latest/registry.json")]
    kept = read_index()
    assert kept is not None
    assert kept.content == fetched.content
    assert [*kept.content.agents] == ["agent"]
    assert abs((kept.fetched - fetched.fetched).total_seconds()) < PATIENCE
    assert Path(index_path()).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (302, b"", "HTTP 302"),
        (500, b"", "HTTP 500"),
        (200, b"no json", "Expecting value"),
        (200, b"[" * 100_000, "nested too deeply"),
        (200, b'{"agents": {}}', "no list"),
        (200, b" " * (MAX_INDEX_BYTES + 1), "more than 5,000,000 bytes"),
        (200, index(*[entry()] * (MAX_AGENTS + 1)), "more than 1,000 agents"),
    ],
)
def test_a_bad_answer_changes_nothing(server: Answers, status: int, body: bytes, reason: str) -> None:
    keep(entry("kept"))
    server.status, server.body = status, body
    with pytest.raises(IndexNotFetched, match=reason):
        fetch_index(ToServer(server))
    kept = read_index()
    assert kept is not None
    assert [*kept.content.agents] == ["kept"]


def test_a_proxy_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(IndexNotFetched):
        fetch_index()


BAD: Final[list[dict[str, Any]]] = [
    entry("Upper"),
    entry("-option"),
    entry("bad", version="new"),
    entry("bad", description="\x1b[2J"),
    entry("bad", description="x" * 1001),
    entry("bad", name="a\u202eb"),
    entry("bad", distribution=None),
    entry("bad", distribution={"npx": {"package": "--call=sh"}}),
    entry("bad", distribution={"npx": {"package": "x; sh"}}),
    entry("bad", distribution={"npx": {"package": "https://example.com/x.tgz"}}),
    entry("bad", distribution={"npx": {"package": "x", "cmd": "-c"}}),
    entry("bad", distribution={"npx": {"package": "x", "args": ["a\nb"]}}),
    entry("bad", distribution={"npx": {"package": "x", "args": ["a"] * 51}}),
    entry("bad", distribution={"uvx": {"package": "x", "env": {"a=b": "c"}}}),
    entry("bad", distribution={"binary": {PLATFORM: {"archive": "http://example.com/x", "cmd": "./x"}}}),
    entry("bad", distribution={"binary": {PLATFORM: {"archive": "https://example.com/x", "cmd": "../x"}}}),
    entry("bad", distribution={"binary": {PLATFORM: {"archive": "https://example.com/x", "cmd": "/bin/sh"}}}),
]


@pytest.mark.parametrize("bad", BAD)
def test_an_entry_that_breaks_a_rule_is_left_out(bad: dict[str, Any]) -> None:
    found = parse_index(index(entry(), bad, "no entry"))
    assert ([*found.agents], found.left_out) == (["agent"], 2)


@given(st.binary(max_size=50) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(index))
def test_any_bytes_are_an_index_or_refused(given_bytes: bytes) -> None:
    found: AgentIndex | None = None
    with suppress(ValueError):
        found = parse_index(given_bytes)
    assert found is None or found.agents == {}


def test_a_command_has_the_form_of_its_kind() -> None:
    sha = "a" * 64
    binary = {
        PLATFORM: {"archive": "https://example.com/x.zip", "cmd": "./bin/x", "sha256": sha, "args": ["acp"]}
    }
    npx = {"package": "@s/x@1.0.0", "cmd": "x-acp", "args": ["--acp"], "env": {"X_MODE": "acp 1"}}
    given_entry = entry(distribution={"binary": binary, "npx": npx, "uvx": {"package": "x==1.0"}})
    agent = parse_index(index(given_entry)).agents["agent"]
    starts = list_starts(agent, PLATFORM)
    assert starts[0] == AgentStart("binary", "x", ("acp",), {}, "https://example.com/x.zip", sha)
    assert [each.command for each in starts] == [
        ("x", "acp"),
        ("env", "X_MODE=acp 1", "npx", "--yes", "--package", "@s/x@1.0.0", "x-acp", "--acp"),
        ("uvx", "x==1.0"),
    ]
    assert [each.kind for each in list_starts(agent, "windows-x86_64")] == ["npx", "uvx"]
    assert choose_start(starts, {"npx": True, "uvx": True}) == starts[1]
    assert choose_start(starts, {"x": False}) is None


def test_a_platform_has_the_name_of_the_registry() -> None:
    assert platform_name("Linux", "x86_64") == PLATFORM
    assert platform_name("Darwin", "arm64") == "darwin-aarch64"
    assert platform_name("Linux", "riscv64") == ""


def test_a_command_is_allowed_exactly() -> None:
    assert not is_allowed("agent", ("npx", "a"))
    allow("agent", ("npx", "a"))
    allow("other", ("uvx", "b"))
    assert is_allowed("agent", ("npx", "a"))
    assert not is_allowed("agent", ("npx", "a", "--new"))
    assert not is_allowed("other", ("npx", "a"))


# Commands


def test_the_known_clients_are_found_without_a_network(capsys: Captured) -> None:
    status, out, err = run(capsys, "client", "search")
    assert status == OK
    for name in ("claude", "codex", "opencode", "gemini"):
        assert f"\n{name} " in out
    assert "never fetched: run watchroom client search --update" in err
    assert "never fetched" in misuse(capsys, "client", "show", "nobody")
    shown = printed_json(capsys, "client", "show", "claude", "--json")
    assert shown["supervised"][0]["tried"]


def test_each_install_command_names_what_it_installs(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = run(capsys, "client", "show", "claude")[1]
    assert "Install the client with: npm install -g @anthropic-ai/claude-code\n" in out
    assert "Install the adapter claude-agent-acp, for watchroom run, with: npm install -g @agent" in out
    gemini = run(capsys, "client", "show", "gemini")[1]
    assert gemini.count("npm install") == 1, "it speaks the protocol without an adapter"
    assert "Install the client with: npm install" in gemini
    assert "Install the client with: npm install" in run(capsys, "client", "show", "opencode")[1]
    monkeypatch.setenv(LANGUAGE_VARIABLE, "zh")
    out = run(capsys, "client", "show", "claude")[1]
    assert "安装客户端：npm install -g @anthropic-ai/claude-code\n" in out
    assert "安装 watchroom run 所需的适配器 claude-agent-acp：npm install -g @agent" in out


def test_an_index_that_cannot_be_fetched_is_reported(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens there.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    status, out, err = run(capsys, "client", "search", "--update")
    assert (status, out) == (1, "")
    assert "was not fetched" in err


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_agent_of_the_registry_is_shown_and_not_run(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    program = tmp_path / "npx"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(LANGUAGE_VARIABLE, language)
    keep(entry("other-agent", name="Other"), entry("gemini"), entry("codex-acp"))
    status, out, _ = run(capsys, "client", "search", "codes")
    assert status == OK
    assert "other-agent" in out
    assert "It codes" in out
    assert "npx" in out
    assert "codex-acp" not in out, "it is known as codex"
    assert "watchroom run codex" in run(capsys, "client", "show", "codex-acp")[1]
    shown = run(capsys, "client", "show", "other-agent")[1]
    assert "npx --yes @scope/agent@1.2.3 --acp" in shown
    assert "Other 1.2.3: It codes" in shown
    assert "watchroom run other-agent" in shown
    assert not (tmp_path / "ran").exists()


def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep an index with an agent that plays a script, and install its program. Return its log."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "scripted"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPTED} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    says = {"sessionUpdate": "agent_message_chunk", "messageId": "m1"}
    step = {"update": {**says, "content": {"type": "text", "text": "Hello from the registry"}}}
    (tmp_path / "script.json").write_text(json.dumps([[step]]))
    log = tmp_path / "log.jsonl"
    start = {"archive": "https://example.com/x.zip", "cmd": "./scripted"}
    words = [str(tmp_path / "script.json"), str(log)]
    keep(entry("scripted", distribution={"binary": {here(): {**start, "args": words}}}))
    return log


def here() -> str:
    import platform

    return platform_name(platform.system(), platform.machine())


def at_a_terminal(command: list[str], typed: str) -> tuple[int, str]:
    """Run ``command`` with a terminal as its standard input, and type into it."""
    ours, its = os.openpty()
    with os.fdopen(ours, "w") as keyboard:
        running = subprocess.Popen(
            command, stdin=its, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        os.close(its)
        keyboard.write(typed)
        keyboard.flush()
        said = running.communicate(timeout=PATIENCE)[0]
    return running.returncode, said


@pytest.mark.slow(6)
def test_a_command_of_the_registry_runs_once_it_is_allowed(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = scripted(tmp_path, monkeypatch)
    workspace.close()
    command = as_typed("run", "scripted", workspace.root, "--agent", "alice", "--once", "Do it")
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2
    assert f"scripted {tmp_path}/script.json {log}" in done.stderr, "the exact command"
    status, said = at_a_terminal(command, "n\n")
    assert status == 2
    assert "Nothing was started" in said
    assert not log.exists()
    status, said = at_a_terminal(command, "y\n")
    assert (status, "Hello from the registry" in said) == (0, True), said
    assert log.exists()
    log.unlink()
    again = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert (again.returncode, "Hello from the registry" in again.stdout) == (0, True), again.stderr
    keep(
        entry(
            "scripted",
            distribution={"binary": {here(): {"archive": "https://example.com/x", "cmd": "scripted"}}},
        )
    )
    other = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert other.returncode == 2, "another command is not allowed yet"


def test_what_is_missing_is_named(
    capsys: Captured, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    start = {"archive": "https://example.com/x.zip", "cmd": "./x", "sha256": "b" * 64}
    both = {"binary": {here(): start}, "uvx": {"package": "x"}}
    keep(entry("missing", distribution=both), entry("claude-acp"))
    workspace.close()
    said = misuse(capsys, "run", "missing", workspace.root, "--agent", "alice")
    for part in ("https://example.com/x.zip", "b" * 64, "docs.astral.sh/uv"):
        assert part in said
    assert "watchroom run claude" in misuse(capsys, "run", "claude-acp", workspace.root, "--agent", "alice")
    assert "no client nobody" in misuse(capsys, "run", "nobody", workspace.root, "--agent", "alice")
    status, _, err = run(capsys, "run", "claude", workspace.root, "--agent", "alice")
    assert (status, "npm install -g @agentclientprotocol/claude-agent-acp" in err) == (1, True)
