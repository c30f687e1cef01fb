"""Several agents are attached in one folder: each client that runs there works as one of them alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from cli.running import Captured, printed
from clients import scripted_client
from clients.attached import HELLO, PATIENCE
from service_process import end_service
from watchroom import Workspace
from watchroom.agents.clients.client_program import runtime_folder

pytestmark = [pytest.mark.slow(2), pytest.mark.usefixtures("service")]

CALL: Final[dict[str, Any]] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make test"},
    "tool_use_id": "toolu_1",
}


class AttachedProject:
    """A folder that clients of the kind ``client`` run in, as its files set them up."""

    def __init__(self, folder: Path, client: str, stack: ExitStack) -> None:
        self.folder = folder
        self._client = client
        self._stack = stack

    def start(self) -> RunningClient:
        """Start a client, which has begun neither its server nor a hook yet."""
        return RunningClient(self, self._stack)

    def server_command(self) -> list[str]:
        if self._client == "claude":
            server = self._read(".mcp.json")["mcpServers"]["watchroom"]
        else:
            server = self._read(".codex/config.toml")["mcp_servers"]["watchroom"]
        return [server["command"], *server["args"]]

    def hook_command(self, event: str) -> list[str]:
        name = ".claude/settings.local.json" if self._client == "claude" else ".codex/hooks.json"
        (group,) = self._read(name)["hooks"][event]
        return ["/bin/sh", "-c", group["hooks"][0]["command"]]

    def _read(self, name: str) -> Any:
        text = (self.folder / name).read_text(encoding="utf-8")
        return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


class RunningClient:
    """A client that runs, with a session of its own."""

    def __init__(self, project: AttachedProject, stack: ExitStack) -> None:
        self._project = project
        self.session = str(uuid4())
        self._has_server = False
        pipe = subprocess.PIPE
        command = [sys.executable, scripted_client.__file__]
        self._process = stack.enter_context(
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=project.folder)
        )
        stack.callback(self.end)

    @property
    def pid(self) -> int:
        return self._process.pid

    def serve(self) -> dict[str, Any]:
        """Start the server, if it was not; returns how it answers, or how it ended."""
        if not self._has_server:
            self.start_server()
        answer = self._do("send", [], HELLO)
        if "result" in answer:
            self._do("send", [], {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def start_server(self) -> None:
        """Start the server without a word to it."""
        self._has_server = True
        self._do("start", self._project.server_command(), {})

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        """Call one of our tools."""
        params = {"name": tool, "arguments": arguments}
        return self._do("send", [], {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})

    def hook(self, name: str, *, within: Sequence[str] = (), **more: object) -> dict[str, Any] | None:
        """Return what a hook answers, run ``within`` another command; None for nothing."""
        event = {"hook_event_name": name, "session_id": self.session, "cwd": "/project", **more}
        ended = self._do("hook", [*within, *self._project.hook_command(name)], event)
        assert (ended["status"], ended["err"]) == (0, "")
        answer: dict[str, Any] | None = json.loads(ended["out"]) if ended["out"] else None
        return answer

    def prompt(self) -> dict[str, Any] | None:
        return self.hook("UserPromptSubmit", prompt="Go")

    def end(self) -> None:
        """Kill the client, as its user does who closes the terminal."""
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)

    def _do(self, what: str, command: list[str], message: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, command, message]) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice", "bob", "carol"]) as opened:
        yield opened


Attach = Callable[..., AttachedProject]


@pytest.fixture
def attach(workspace: Workspace, tmp_path: Path, capsys: Captured) -> Iterator[Attach]:
    """Attach agents in a folder, one after another."""
    with ExitStack() as stack:

        def run(*agents: str, client: str = "claude", folder: str = "project") -> AttachedProject:
            project = tmp_path / folder
            project.mkdir(exist_ok=True)
            for agent in agents:
                arguments = ("--agent", agent, "--project", str(project), "--write")
                printed(capsys, "attach", client, workspace.root, *arguments)
            return AttachedProject(project, client, stack)

        yield run


def agents_of(workspace: Workspace, client: RunningClient) -> list[str]:
    """The agents that rows of the client's session are of."""
    sessions = workspace.session_zone.heads()
    return [each.path.partition("/")[0] for each in sessions if each.path.endswith(f"/{client.session}")]


def refusal_of(said: dict[str, Any] | None) -> str:
    """Why a call was denied."""
    assert said is not None
    own = said["hookSpecificOutput"]
    assert own["permissionDecision"] == "deny"
    reason: str = own["permissionDecisionReason"]
    return reason


both_ways = pytest.mark.parametrize("has_server", [True, False], ids=["server", "hooks alone"])


@pytest.mark.parametrize("client", ["claude", "codex"])
@both_ways
def test_two_clients_get_two_agents_and_keep_them(
    workspace: Workspace, attach: Attach, client: str, has_server: bool
) -> None:
    project = attach("alice", "bob", client=client)
    first, second = project.start(), project.start()
    if has_server:
        first.serve()
        second.serve()
    for _ in range(2):
        for each in (second, first):
            each.prompt()
            assert each.hook("PreToolUse", **CALL) is None
    assert (agents_of(workspace, second), agents_of(workspace, first)) in (
        [(["alice"], ["bob"]), (["bob"], ["alice"])] if has_server else [(["alice"], ["bob"])]
    )


def test_tools_and_hooks_of_a_client_are_of_the_same_agent(workspace: Workspace, attach: Attach) -> None:
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]
    for each in clients:
        each.serve()
    for each in reversed(clients):
        each.call("save_to_my_workspace", filename="a.md", content=each.session)
    for each in clients:
        each.prompt()
    for each in clients:
        (kept,) = [path for path in Path(workspace.root).rglob("a.md") if path.read_text() == each.session]
        assert [kept.parent.name] == agents_of(workspace, each)


@both_ways
def test_a_client_for_which_no_agent_is_left_is_refused(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("alice", "bob")
    for _ in range(2):
        client = project.start()
        if has_server:
            client.serve()
        client.prompt()
    third = project.start()
    if has_server:
        assert "alice, bob" in third.serve()["err"]
    assert "watchroom attach claude" in refusal_of(third.hook("PreToolUse", **CALL))
    asked = third.hook("PermissionRequest", **CALL)
    assert asked is not None
    assert asked["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    shown = third.hook("SessionStart", source="startup")
    assert shown is not None
    assert "--agent NAME" in shown["systemMessage"]
    blocked = third.prompt()
    assert blocked is not None
    assert blocked["decision"] == "block"
    assert agents_of(workspace, third) == []


@both_ways
def test_a_client_that_has_ended_frees_its_agent(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]
    for each in clients:
        if has_server:
            each.serve()
        each.prompt()
    ended = agents_of(workspace, clients[0])
    clients[0].end()
    third = project.start()
    if has_server:
        third.serve()
    third.prompt()
    assert agents_of(workspace, third) == ended
    assert third.hook("PreToolUse", **CALL) is None


@both_ways
def test_a_resumed_session_gets_its_agent_again(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("alice", "bob")
    first, second = project.start(), project.start()
    first.prompt()
    second.prompt()
    assert agents_of(workspace, second) == ["bob"]
    for each in (first, second):
        each.end()
    third = project.start()
    third.session = second.session
    if has_server:
        third.serve()
    third.hook("SessionStart", source="resume")
    third.prompt()
    assert agents_of(workspace, third) == ["bob"]
    other = project.start()
    other.prompt()
    assert agents_of(workspace, other) == ["alice"]


@both_ways
def test_a_session_whose_agent_is_at_work_is_not_resumed_as_another(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("alice", "bob")
    first = project.start()
    first.prompt()
    second = project.start()
    second.session = first.session
    if has_server:
        second.serve()
    reason = refusal_of(second.hook("PreToolUse", **CALL))
    assert "alice" in reason
    assert agents_of(workspace, second) == ["alice"]
    second.session = str(uuid4())
    second.prompt()
    assert agents_of(workspace, second) == ["bob"], "a session of its own begins"
    second.session = first.session
    assert "alice" in refusal_of(second.hook("PreToolUse", **CALL))


def test_an_agent_that_a_server_only_reserved_goes_to_whom_it_belongs(
    workspace: Workspace, attach: Attach
) -> None:
    project = attach("alice", "bob")
    gone = project.start()
    gone.prompt()
    gone.end()
    waiting, resuming = project.start(), project.start()
    assert "agent 'alice'" in waiting.serve()["result"]["instructions"]
    resuming.session = gone.session
    resuming.prompt()
    assert agents_of(workspace, resuming) == ["alice"]
    told = waiting.prompt()
    assert told is not None
    assert "'bob'" in told["hookSpecificOutput"]["additionalContext"]
    assert agents_of(workspace, waiting) == ["bob"]


@pytest.mark.parametrize("attempt", range(3))
@both_ways
def test_clients_that_start_at_once_get_different_agents(
    workspace: Workspace, attach: Attach, has_server: bool, attempt: int
) -> None:
    if attempt == 0:
        # The clients start the service, too.
        end_service(Path(runtime_folder()))
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]

    def work(client: RunningClient) -> None:
        client.prompt()
        client.hook("PreToolUse", **CALL)
        client.hook("PostToolUse", **CALL, tool_response="ok")

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(work, each) for each in clients]
        for each in done:
            each.result(PATIENCE)
        if has_server:
            served = [pool.submit(each.serve) for each in clients]
            for answer in served:
                assert "result" in answer.result(PATIENCE)
            for each in [pool.submit(work, each) for each in clients]:
                each.result(PATIENCE)
    found = [agents_of(workspace, each) for each in clients]
    assert sorted(found) == [["alice"], ["bob"]]


def test_servers_and_hooks_that_start_at_once_agree(workspace: Workspace, attach: Attach) -> None:
    """The hook and the server of a client are two processes, which start the service."""
    end_service(Path(runtime_folder()))
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(RunningClient.start_server, clients))
        list(pool.map(RunningClient.prompt, clients))
        assert all("result" in each for each in pool.map(RunningClient.serve, clients))
        list(pool.map(lambda each: each.call("save_to_my_workspace", filename="a", content="b"), clients))
    found = [agents_of(workspace, each) for each in clients]
    assert sorted(found) == [["alice"], ["bob"]]
    rows = [row.actor for row in workspace.journal.rows(limit=1000) if row.tool == "save_to_my_workspace"]
    assert sorted(rows) == ["alice", "bob"]


def test_an_agent_that_works_elsewhere_is_not_given_to_another_client(
    workspace: Workspace, attach: Attach
) -> None:
    alone = attach("alice", folder="other").start()
    alone.prompt()
    client = attach("alice", "bob").start()
    client.prompt()
    assert (agents_of(workspace, alone), agents_of(workspace, client)) == (["alice"], ["bob"])


NESTED = (sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)")
"""A client that runs a hook, and was started by another client."""


@both_ways
def test_a_client_beneath_another_works_as_the_same_agent(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]
    for each in clients:
        if has_server:
            each.serve()
        each.prompt()
    outer = clients[1]
    (agent,) = agents_of(workspace, outer)
    outer.session = str(uuid4())
    outer.hook("UserPromptSubmit", within=NESTED, prompt="Go")
    assert agents_of(workspace, outer) == [agent]


@both_ways
def test_a_client_keeps_its_agent_when_another_is_attached(
    workspace: Workspace, attach: Attach, has_server: bool
) -> None:
    project = attach("bob")
    first = project.start()
    if has_server:
        first.serve()
    first.prompt()
    attach("alice")
    second = project.start()
    second.prompt()
    for each in (second, first):
        assert each.hook("PreToolUse", **CALL) is None
    first.session = str(uuid4())
    first.prompt()
    assert (agents_of(workspace, first), agents_of(workspace, second)) == (["bob"], ["alice"])


def test_clients_that_shared_an_agent_keep_it_when_another_is_attached(
    workspace: Workspace, attach: Attach
) -> None:
    project = attach("alice")
    first, second = project.start(), project.start()
    first.prompt()
    second.prompt()
    attach("bob")
    first.hook("SessionEnd", reason="clear")
    second.prompt()
    first.session = str(uuid4())
    first.prompt()
    assert (agents_of(workspace, first), agents_of(workspace, second)) == (["alice"], ["alice"])


@both_ways
def test_a_client_whose_agent_was_detached_works_as_no_other(
    workspace: Workspace, attach: Attach, capsys: Captured, has_server: bool
) -> None:
    project = attach("alice", "bob")
    clients = [project.start() for _ in range(2)]
    for each in clients:
        if has_server:
            each.serve()
        each.prompt()
    printed(capsys, "detach", "claude", "--agent", "bob", "--project", str(project.folder))
    for each in clients:
        said = each.hook("PreToolUse", **CALL)
        if agents_of(workspace, each) == ["bob"]:
            assert "bob" in refusal_of(said)
        else:
            assert said is None
