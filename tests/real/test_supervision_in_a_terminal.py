"""What a person supervises, in a terminal: the dashboard in a pseudo-terminal, and scripted clients in processes
of their own, which report the hooks that clients report."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import date, timedelta
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
from clients import scripted_acp_agent
from clients.test_acp_registry import entry, here, keep
from pty_driver import Terminal
from real.programs import installed
from receiver import receiving
from trees import launched_client
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom_cli.main import LANGUAGE_VARIABLE

pytestmark = pytest.mark.real

WATCHROOM: Final = installed("watchroom")
PATIENCE: Final = 60
SIZE: Final = (200, 50)
ENTER, TAB = "\r", "\t"
ASK_ABOUT_BASH: Final = '[[policy.rules]]\ntool = ["Bash"]\nverdict = "ask"\n'
WEB: Final = """
[alerts]
digest_seconds = 0
[alerts.targets.hook]
type = "webhook"
url = "$WATCHROOM_HOOK"
[web]
public_url = "https://team.example.org"
person = "dana"
targets = ["hook"]
"""
HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


class Screen(Terminal):
    """A command of a person in a terminal."""

    def sees(self, *texts: str) -> None:
        """Wait until the screen shows all of ``texts``."""

        def holds(lines: list[str]) -> bool:
            return all(any(text in line for line in lines) for text in texts)

        self.wait_for(holds, what=str(texts), timeout=PATIENCE)

    def sees_no(self, text: str) -> None:
        """Wait until the screen does not show ``text``."""
        self.wait_for(
            lambda lines: not any(text in line for line in lines), what=f"no {text}", timeout=PATIENCE
        )

    def goes_to(self, key: str, *texts: str) -> None:
        """Press ``key``, after which the screen shows ``texts``."""
        self.send(key)
        self.sees(*texts)


class Client:
    """A client that `watchroom claude` starts in ``folder``. It has a session, which a person has prompted."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.session = str(uuid4())
        self._count = 0
        self._is_known = False
        pipe = subprocess.PIPE
        command = [WATCHROOM, "claude"]
        self._process = stack.enter_context(
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder, start_new_session=True)
        )
        stack.callback(self._end)
        self._answers: Queue[Any] = Queue()
        Thread(target=self._read, daemon=True).start()
        self.answer()
        self.hook("SessionStart", source="startup")
        self.prompt("Go")

    def send(self, event: str, **more: object) -> None:
        """Report an event. Its hook can wait."""
        given = {"hook_event_name": event, "session_id": self.session, "cwd": str(self.folder), **more}
        self._write(given)

    def answer(self) -> Any:
        """Return the next answer of hooks or of the server."""
        return self._answers.get(timeout=PATIENCE)

    def hook(self, event: str, **more: object) -> dict[str, Any]:
        """Report an event. Return what its hook prints."""
        self.send(event, **more)
        return self.printed()

    def printed(self) -> dict[str, Any]:
        """Return what the hook of the event prints that was reported."""
        ((status, out, err),) = self.answer()
        assert (status, err) == (0, "")
        found: dict[str, Any] = json.loads(out)["hookSpecificOutput"] if out else {}
        return found

    def woken(self) -> str:
        """Return the text with which the hook of a stop starts the next turn, and report it as a prompt."""
        ((status, _, text),) = self.answer()
        assert status == 2
        self.prompt(text)
        return str(text)

    def prompt(self, text: str) -> dict[str, Any]:
        return self.hook("UserPromptSubmit", prompt=text)

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        """Report that a call of ``tool`` begins. Return what `end_call` reports."""
        self._count += 1
        call = {"tool_name": tool, "tool_use_id": f"call{self._count}", "tool_input": arguments}
        self.send("PreToolUse", **call)
        return call

    def end_call(self, call: dict[str, Any], **response: object) -> dict[str, Any]:
        return self.hook("PostToolUse", **call, tool_response=response)

    def is_allowed(self) -> bool:
        """Wait for the decision about a call."""
        return bool(self.printed()["permissionDecision"] == "allow")

    def read(self, name: str) -> dict[str, Any]:
        """Read a file. Return what the hook says afterwards."""
        call = self.call("Read", file_path=str(self.folder / name))
        self.printed()
        text = (self.folder / name).read_text()
        count = len(text.splitlines())
        return self.end_call(
            call, file={"content": text, "startLine": 1, "numLines": count, "totalLines": count}
        )

    def edit(self, name: str, old: str, new: str) -> None:
        call = self.call("Edit", file_path=str(self.folder / name), old_string=old, new_string=new)
        self.printed()
        path = self.folder / name
        text = path.read_text()
        path.write_text(text.replace(old, new))
        self.end_call(call, originalFile=text, newString=new)

    def use(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call one of Watchroom's tools."""
        if not self._is_known:
            self._request("initialize", HELLO)
            self._is_known = True
        found: dict[str, Any] = self._request("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not found.get("isError"), found
        return found

    def _request(self, method: str, params: object) -> dict[str, Any]:
        self._count += 1
        self._write({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        found: dict[str, Any] = self.answer()
        return found

    def _write(self, given: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))

    def _end(self) -> None:
        """End the client with its hooks, which can wait."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Desk:
    """A person's repository, and what runs there."""

    def __init__(self, repository: Repository, stack: ExitStack) -> None:
        self.repository = repository
        self._stack = stack

    @property
    def folder(self) -> Path:
        return self.repository.folder

    def configure(self, text: str = "", *agents: str) -> None:
        """Make the workspace with ``agents``, and with ``text`` in its settings."""
        Workspace.open(self.repository.root, agents=agents).close()
        config = self.repository.root / ".watchroom/config.toml"
        config.write_text(f"{config.read_text()}\n{text}")

    def start_client(self) -> Client:
        return Client(self.folder, self._stack)

    def run(self, *arguments: str) -> Screen:
        """Run a command in a terminal of its own."""
        return self._stack.enter_context(Screen([WATCHROOM, *arguments], *SIZE, cwd=str(self.folder)))

    def open_dashboard(self, *agents: str) -> Screen:
        """Open the dashboard, which shows ``agents``."""
        screen = self.run("open", "--as", "dana")
        screen.sees("Needs you", *agents)
        return screen


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    monkeypatch.setenv(LANGUAGE_VARIABLE, "en")
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    install("claude", launched_client.__file__, tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{Path(WATCHROOM).parent}:{os.environ['PATH']}")
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="one\ntwo\n", b__txt="b\n")
    with ExitStack() as stack:
        yield Desk(repository, stack)


def install(name: str, script: str, folder: Path) -> None:
    """Install a Python script as the program ``name``."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, script])} "$@"\n')
    (folder / name).chmod(0o755)


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def test_a_failed_check_goes_back_twice_and_is_then_unproven(desk: Desk) -> None:
    desk.configure('[[checks]]\nname = "tests"\ncommand = "echo \'2 failed, 39 passed in 0.1s\'; exit 1"\n')
    client = desk.start_client()
    dashboard = desk.open_dashboard("claude1")
    for number in (1, 2):
        client.send("Stop")
        dashboard.goes_to("2", f"check failed: 2 of 41 tests · sent back ({number})")
        assert f"{number} of 2" in client.woken()
    client.send("Stop")
    dashboard.sees("unproven · check failed: 2 of 41 tests")
    dashboard.goes_to("1", "1 needs you", "says that it is done, but its check did not pass: 2 of 41 tests")
    dashboard.goes_to("!", "f outcome", "2 failed, 39 passed")
    dashboard.goes_to("S", "claude1: says that it is done")
    dashboard.send(ENTER)
    dashboard.goes_to("2", "accepted by human:dana")


def test_an_agent_at_a_limit_is_parked_and_one_key_resumes_it_once(desk: Desk) -> None:
    desk.configure()
    client = desk.start_client()
    dashboard = desk.open_dashboard("claude1")

    def limit(seconds: float) -> None:
        words = f"Claude AI usage limit reached|{int(time.time() + seconds)}"
        client.send("StopFailure", error="rate_limit", last_assistant_message=words)
        dashboard.sees("1 needs you", "⧖ parked claude1", "limit until", "usage limit")

    limit(30)
    dashboard.goes_to("a", "then resumed", "all well")
    assert client.woken().startswith("A rate or usage limit")
    dashboard.sees_no("parked")
    # The permission is used up.
    limit(3600)
    dashboard.send("p")
    client.woken()
    dashboard.sees_no("⧖ parked")


def test_a_grant_is_given_listed_and_revoked_with_keys(desk: Desk) -> None:
    desk.configure(ASK_ABOUT_BASH)
    client = desk.start_client()
    dashboard = desk.open_dashboard("claude1")
    client.call("Bash", command="make test")
    dashboard.sees("1 needs you", "make test")
    dashboard.goes_to("7", "claude1 asks for approval")
    dashboard.goes_to("A", "Approve now, and allow without asking", "claude1 may call Bash with exactly")
    dashboard.goes_to(ENTER, "20 left")
    assert client.is_allowed()
    client.call("Bash", command="make test")
    assert client.is_allowed()
    dashboard.sees("19 left")
    dashboard.goes_to(TAB, "X revoke")
    dashboard.send("X")
    dashboard.sees_no("19 left")
    client.call("Bash", command="make test")
    dashboard.goes_to("1", "1 needs you", "make test")
    dashboard.send("a")
    assert client.is_allowed()
    dashboard.sees_no("1 needs you")


def test_a_link_of_an_alert_answers_while_the_dashboard_is_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.configure(ASK_ABOUT_BASH + WEB)
    port = free_port()
    with receiving() as receiver:
        monkeypatch.setenv("WATCHROOM_HOOK", f"{receiver.url}/hook")
        client = desk.start_client()
        desk.run("web", "--port", free_port(), "--phone-port", port).sees("http://", port)
        dashboard = desk.open_dashboard("claude1")
        client.call("Bash", command="make test")
        dashboard.sees("1 needs you", "make test")
        path = httpx.URL(receiver.next().body["link"]).path
        headers = {"Host": "team.example.org", "Origin": "https://team.example.org"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE) as phone:
            page = phone.get(path).text
            form = re.search(r'name="form" value="([0-9a-f]+)"', page)
            assert form
            assert "make test" in page
            dashboard.sees("1 needs you")
            assert phone.post(path, data={"form": form[1], "decision": "approve"}).status_code == 200
        dashboard.sees_no("1 needs you")
        assert client.is_allowed()


def test_a_status_line_shows_the_need_and_a_key_goes_to_the_client(desk: Desk) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    desk.configure(ASK_ABOUT_BASH)
    with TemporaryDirectory(dir="/tmp") as place, ExitStack() as stack:
        base = ["tmux", "-S", f"{place}/s"]

        def tmux(*words: str) -> str:
            done = subprocess.run(
                [*base, *words], check=True, capture_output=True, text=True, timeout=PATIENCE
            )
            return done.stdout.strip()

        folder = str(desk.folder)
        tmux("-f", os.devnull, "new-session", "-d", "-n", "home", "-c", folder, "sleep 600")
        stack.callback(tmux, "kill-server")
        for name, value in {
            "status-interval": "1",
            "status-right-length": "100",
            "status-right": f"#({shlex.join([WATCHROOM, 'status', '--line', folder])})",
        }.items():
            tmux("set-option", "-g", name, value)
        terminal = stack.enter_context(Screen([*base, "attach"], *SIZE))
        terminal.sees("[0] 0:home*")
        client = tmux(
            "new-window", "-P", "-F", "#{pane_id}", "-n", "client", "-c", folder, f"{WATCHROOM} claude"
        )
        terminal.sees('{"pid"')
        session = str(uuid4())
        call = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_use_id": "call1"}
        events: dict[str, dict[str, Any]] = {
            "SessionStart": {},
            "UserPromptSubmit": {"prompt": "Go"},
            "PreToolUse": call,
        }
        for event, more in events.items():
            given = {"hook_event_name": event, "session_id": session, "cwd": folder, **more}
            tmux("send-keys", "-t", client, "-l", json.dumps(given))
            tmux("send-keys", "-t", client, "Enter")
        terminal.sees("1 need: claude1 asks for approval: Bash make test")
        tmux("new-window", "-n", "board", "-c", folder, shlex.join([WATCHROOM, "open", "--as", "dana"]))
        terminal.sees("Needs you", "1 needs you", "make test")
        terminal.goes_to("2", "claude1", "waits")
        terminal.goes_to("J", '{"pid"', "UserPromptSubmit")
        assert tmux("list-clients", "-F", "#{pane_id}") == client
        tmux("select-window", "-t", "board")
        terminal.sees("watchroom")
        terminal.goes_to("1", "Needs you")
        terminal.send("a")
        terminal.sees_no("1 need")


def test_a_session_is_forked_and_its_work_handed_over(desk: Desk) -> None:
    client = desk.start_client()
    client.read("a.txt")
    client.edit("a.txt", "two", "2")
    fork = desk.run("fork-session", "claude1", "eve", "--as", "dana")
    fork.sees('{"pid"', client.session, "--fork-session")
    tree = desk.folder.with_name("project.trees") / "eve"
    assert (tree / "a.txt").read_text() == "one\n2\n"

    def report(event: str, **more: str) -> None:
        fork.send(
            json.dumps({"hook_event_name": event, "session_id": "forked", "cwd": str(tree), **more}) + "\n"
        )

    report("SessionStart")
    dashboard = desk.open_dashboard("claude1", "eve")
    dashboard.goes_to("2", "claude1", "eve")
    dashboard.goes_to("O", "Work of claude1", "receiver: eve", "a.txt")
    dashboard.send(f"{TAB}Mind the tests{ENTER}")
    dashboard.sees_no("receiver: eve")
    dashboard.goes_to("3", "claude1 → eve", "> Mind the tests")
    report("UserPromptSubmit", prompt="Go on")
    fork.sees("claude1 handed you 'briefing.md'")
    desk.run("hand-over", "claude1").sees("a.txt", "Go")


def test_agents_are_told_of_changes_and_overlapping_plans_are_a_need(desk: Desk) -> None:
    one, other = desk.start_client(), desk.start_client()
    dashboard = desk.open_dashboard("claude1", "claude2")
    one.read("a.txt")
    other.read("a.txt")
    other.edit("a.txt", "two", "2")
    dashboard.goes_to("4", "a.txt", "claude2")
    said = one.read("b.txt")["additionalContext"]
    assert "a.txt" in said
    assert "claude2" in said
    one.use("declare_plan", paths=["src/**"], intent="rename")
    other.use("declare_plan", paths=["src/api.py"], intent="fix")
    dashboard.goes_to("1", "1 needs you", "claude1 and claude2 both plan to change it")
    dashboard.goes_to("S", "both plan to change")
    dashboard.send(ENTER)
    dashboard.sees_no("1 needs you")


def test_an_agent_of_the_registry_is_allowed_once_and_works(desk: Desk, tmp_path: Path) -> None:
    desk.configure("", "alice")
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    says = {"sessionUpdate": "agent_message_chunk", "messageId": "m1"}
    call = {"toolCallId": "c1", "title": "Run make test", "kind": "execute"}
    script.write_text(
        json.dumps(
            [
                [
                    {"update": {"sessionUpdate": "tool_call", "status": "pending", **call}},
                    {"ask": {"toolCallId": "c1", "rawInput": {"command": "make test"}}},
                    {"update": {**says, "content": {"type": "text", "text": "Hello from the registry"}}},
                ]
            ]
        )
    )
    install("scripted", scripted_acp_agent.__file__, tmp_path / "programs")
    start = {"archive": "https://example.com/x.zip", "cmd": "./scripted", "args": [str(script), str(log)]}
    keep(entry("scripted", distribution={"binary": {here(): start}}))
    dashboard = desk.open_dashboard()

    def works(client: Screen) -> None:
        dashboard.sees("1 needs you", "alice", "make test")
        dashboard.send("a")
        client.sees("Hello from the registry")
        assert client.wait(PATIENCE) == 0
        dashboard.sees_no("1 needs you")

    command = ("run", "scripted", str(desk.repository.root), "--agent", "alice", "--once", "Do it")
    first = desk.run(*command)
    first.sees("scripted", "script.json", "[y/N]")
    assert not log.exists()
    first.send("y\n")
    works(first)
    # The second time, the command starts at once.
    works(desk.run(*command))


def test_routines_are_listed_and_stopped(desk: Desk) -> None:
    limits = ("--budget", "1", "--total", "20", "--until", (date.today() + timedelta(days=30)).isoformat())
    own = ("--client", "claude", *limits, "--as", "dana")
    daily = desk.run("task", "--every", "day", "--at", "07:00", "Update.", "--name", "deps", *own)
    daily.sees("Routine deps is added")
    assert daily.wait(PATIENCE) == 0
    look = desk.run("task", "--on", "a.txt", "Look at it.", "--name", "look", *own)
    look.sees("Routine look is added")
    assert look.wait(PATIENCE) == 0
    dashboard = desk.open_dashboard()
    dashboard.goes_to(
        "9", "Routines", "deps", "daily 07:00", "look", "when a.txt changes", "at the next change"
    )
    desk.repository.write("a.txt", "one\n")
    dashboard.sees("failed")
    dashboard.send(TAB)
    dashboard.goes_to("X", "Stop the routine deps?")
    dashboard.goes_to(ENTER, "stopped")
    desk.run("routine", "list").sees("stopped")
