"""The plugin for Claude Code and Codex: its hooks as a client's shell runs them, its server, and its files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cli.running import Captured, printed
from clients.attached import HELLO, PATIENCE, told
from service_process import running_service
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.claude import read_event
from watchroom.agents.clients.registry import PLUGIN_CLIENTS
from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS, all_tools
from watchroom.features.trees.rows import REPO
from watchroom_cli.start.plugin import AGENTS_FILE, FOLDER

ROOT: Final = Path(__file__).parents[2]
PLUGIN: Final = FOLDER / "watchroom"
VARIABLES: Final = {name: each.folder for name, each in PLUGIN_CLIENTS.items()}
PROGRAM: Final = f'#!/bin/sh\necho "$@" >>"$CALLED"\nexec {sys.executable} -m watchroom_cli.program "$@"\n'
CURL: Final = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl(1)")
pytestmark = pytest.mark.slow(5)


class Shell:
    """Runs hooks of the plugin as a client in ``folder`` does. ``called`` has a line for each start of the
    program ``watchroom``."""

    def __init__(self, scratch: Path, folder: Path, *, has_program: bool = True) -> None:
        self.folder = folder
        self.called = scratch / "called"
        self.called.touch()
        programs = scratch / "programs"
        programs.mkdir()
        if has_program:
            (programs / "watchroom").write_text(PROGRAM)
            (programs / "watchroom").chmod(0o755)
        home = {"HOME": str(scratch / "home"), "CODEX_HOME": str(scratch / "home/.codex")}
        path = f"{programs}:/usr/bin:/bin"
        self.environment = {**os.environ, **home, "PATH": path, "CALLED": str(self.called)}

    def hook(
        self, client: str, name: str, environment: dict[str, str] | None = None, **more: object
    ) -> dict[str, Any] | None:
        """Return the answer of a hook that succeeds without an error, None if it prints nothing."""
        hooks = json.loads((PLUGIN / f"hooks/{client}.json").read_text())["hooks"]
        (group,) = hooks[name]
        (entry,) = group["hooks"]
        own = {VARIABLES[client]: str(PLUGIN), **(environment or {})}
        done = subprocess.run(
            ["/bin/sh", "-c", entry["command"]],
            input=json.dumps(told(name, cwd=str(self.folder), **more)) + "\n",
            cwd=self.folder,
            env={**self.environment, **own},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def serve(self, client: str, *requests: object) -> list[dict[str, Any]]:
        """Return the answers of the plugin's server."""
        with subprocess.Popen(
            ["watchroom", "plugin", "--serve", client],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment,
            text=True,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("".join(json.dumps(each) + "\n" for each in requests))
            server.stdin.flush()
            count = sum(isinstance(each, dict) and "id" in each for each in requests)
            answers = [json.loads(server.stdout.readline()) for _ in range(count)]
            server.stdin.close()
            assert server.wait(PATIENCE) == 0
        return answers


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="one\n")
    return repository


@pytest.fixture
def supervised(repository: Repository) -> Repository:
    Workspace.open(repository.root).close()
    return repository


def edits(shell: Shell, client: str, text: str) -> Iterator[dict[str, Any] | None]:
    """Write ``a.txt``, and yield the answers of the hooks around it."""
    path = shell.folder / "a.txt"
    call: dict[str, Any] = {
        "tool_name": "Write",
        "tool_use_id": "w1",
        "tool_input": {"file_path": str(path), "content": text},
    }
    yield shell.hook(client, "SessionStart")
    yield shell.hook(client, "PreToolUse", **call)
    path.write_text(text)
    yield shell.hook(client, "PostToolUse", tool_response={"content": text}, **call)


def writers(repository: Repository) -> list[tuple[str, str]]:
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        rows = [row for row in workspace.journal.rows(limit=1000) if row.zone == REPO and row.version]
    return [(row.actor, row.tool) for row in rows if row.actor != "system"]


def test_the_committed_files_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make_plugin.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("has_service", [False, True], ids=["alone", "served"])
def test_a_session_works_as_an_agent_without_attach(
    supervised: Repository, tmp_path: Path, *, has_service: bool
) -> None:
    shell = Shell(tmp_path, supervised.folder)
    if has_service:
        with running_service():
            assert [*edits(shell, "claude", "two\n")] == [None] * 3
    else:
        assert [*edits(shell, "claude", "two\n")] == [None] * 3
    assert writers(supervised) == [("claude1", "write_file")]


@CURL
def test_the_program_is_not_started_while_the_service_runs(supervised: Repository, tmp_path: Path) -> None:
    shell = Shell(tmp_path, supervised.folder)
    with running_service():
        assert [*edits(shell, "claude", "two\n")] == [None] * 3
    assert shell.called.read_text() == ""


def test_a_linked_tree_and_a_path_with_a_blank_are_found(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "my project")
    repository.commit(a__txt="one\n")
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    Workspace.open(repository.root).close()
    (tmp_path / "linked" / "sub").mkdir()
    shell = Shell(tmp_path, tmp_path / "linked" / "sub")
    with running_service():
        assert shell.hook("claude", "SessionStart", {"CLAUDE_PROJECT_DIR": str(tmp_path / "linked")}) is None
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        assert [*workspace.registry.current().agents] == ["claude1"]


@pytest.mark.parametrize("client", VARIABLES)
def test_without_a_workspace_it_does_nothing(client: str, repository: Repository, tmp_path: Path) -> None:
    shell = Shell(tmp_path, repository.folder)
    assert [*edits(shell, client, "two\n")] == [None] * 3
    assert shell.called.read_text() == ""
    assert not repository.root.exists()
    shell.folder = tmp_path
    assert shell.hook(client, "SessionStart") is None


@pytest.mark.parametrize(("language", "said"), [("en", "not on the PATH"), ("zh", "PATH 中没有")])
def test_a_missing_program_is_reported_once(
    language: str, said: str, supervised: Repository, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, supervised.folder, has_program=False)
    shell.environment["WATCHROOM_LANGUAGE"] = language
    first, *others = edits(shell, "claude", "two\n")
    assert first is not None
    assert said in first["systemMessage"]
    assert others == [None, None]


def test_a_missing_script_blocks_no_call(supervised: Repository, tmp_path: Path) -> None:
    shell = Shell(tmp_path, supervised.folder)
    gone = {"CLAUDE_PLUGIN_ROOT": str(tmp_path / "gone")}
    assert shell.hook("claude", "PreToolUse", gone, tool_name="Write") is None


@pytest.mark.parametrize("client", VARIABLES)
def test_attached_hooks_of_the_workspace_turn_it_off(
    client: str, supervised: Repository, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(tmp_path, supervised.folder)
    (tmp_path / "home/.codex").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home/.codex"))
    monkeypatch.chdir(supervised.folder)
    printed(capsys, "attach", client)
    first, *others = edits(shell, client, "two\n")
    assert first is not None
    assert "watchroom detach" in first["systemMessage"]
    assert others == [None, None]
    assert shell.called.read_text() == ""
    assert "tools" not in shell.serve(client, HELLO)[0]["result"]["capabilities"]
    printed(capsys, "detach", client)
    with running_service():
        assert shell.hook(client, "SessionStart") is None
        assert "tools" in shell.serve(client, HELLO)[0]["result"]["capabilities"]


def test_a_repository_runs_no_program_of_its_own(supervised: Repository, tmp_path: Path) -> None:
    shell, made = Shell(tmp_path, supervised.folder), tmp_path / "made"
    for name in ("watchroom", "curl", "grep", "head", "timeout", "id", "cat"):
        program = supervised.folder / name
        program.write_text(f"#!/bin/sh\ntouch {made}\n")
        program.chmod(0o755)
    path = shell.environment["PATH"]
    shell.environment["PATH"] = f":.:bin::{path}:"
    assert [*edits(shell, "claude", "two\n")] == [None] * 3
    assert shell.called.read_text() != ""
    shell.environment["PATH"] = "."
    assert shell.hook("claude", "SessionStart") is not None
    assert not made.exists()


@pytest.mark.parametrize(
    "name", ["$(touch made)", "a'b", 'a"b', "a\nb", "`touch made`", "a\\_b", "-x", "数据", "a;b", "*"]
)
@pytest.mark.parametrize("client", VARIABLES)
def test_any_name_of_a_folder_is_only_a_name(
    client: str, name: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / name)
    repository.commit(a__txt="one\n")
    Workspace.open(repository.root).close()
    shell = Shell(tmp_path, repository.folder)
    assert shell.hook(client, "SessionStart") is None
    with running_service():
        assert shell.hook(client, "PreToolUse", tool_name="Read") is None
    calls = shell.called.read_text()
    assert str(repository.root) in calls
    assert not [*tmp_path.rglob("made")]
    (tmp_path / "home/.codex").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home/.codex"))
    monkeypatch.chdir(repository.folder)
    printed(capsys, "attach", client)
    for event in ("SessionStart", "PreToolUse"):
        shell.hook(client, event, tool_name="Read")
    assert shell.called.read_text() == calls, "the hooks of attach report the events"


def test_a_relative_folder_of_the_client_is_no_workspace(supervised: Repository, tmp_path: Path) -> None:
    shell = Shell(tmp_path, supervised.folder)
    assert shell.hook("claude", "SessionStart", {"CLAUDE_PROJECT_DIR": "sub"}) is None


def test_a_variable_turns_it_off(supervised: Repository, tmp_path: Path) -> None:
    shell = Shell(tmp_path, supervised.folder)
    shell.environment["WATCHROOM_PLUGIN"] = "off"
    assert [*edits(shell, "claude", "two\n")] == [None] * 3
    assert shell.called.read_text() == ""
    assert shell.serve("claude", HELLO)[0]["result"]["capabilities"] == {}


def test_the_commands_of_claude_get_the_mark_of_an_agent(supervised: Repository, tmp_path: Path) -> None:
    shell, file = Shell(tmp_path, supervised.folder), tmp_path / "environment"
    with running_service():
        shell.hook("claude", "SessionStart", {"CLAUDE_ENV_FILE": str(file)})
        shell.hook("claude", "Stop", {"CLAUDE_ENV_FILE": str(file)})
    assert file.read_text() == "export WATCHROOM_AGENT='claude*'\n"


def test_the_server_without_a_workspace_has_no_tools(repository: Repository, tmp_path: Path) -> None:
    asked: list[object] = [{"jsonrpc": "2.0", "id": "a", "method": "server/discover"}, HELLO, "no object"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    first, hello, pong = Shell(tmp_path, repository.folder).serve("claude", *asked, ping)
    assert (first["id"], first["error"]["code"]) == ("a", -32601)
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert hello["result"]["capabilities"] == {}
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_workspace_in_the_working_tree_is_not_used(repository: Repository, tmp_path: Path) -> None:
    """A clone can contain it, with the address of a journal on another machine."""
    Workspace.open(repository.folder).close()
    shell = Shell(tmp_path, repository.folder)
    assert [*edits(shell, "claude", "two\n")] == [None] * 3
    assert shell.called.read_text() == ""
    assert shell.serve("claude", HELLO)[0]["result"]["capabilities"] == {}


def test_its_tools_count_as_tools_of_watchroom() -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "mcp__plugin_watchroom_watchroom__collab_read"}
    assert read_event(event)["tool_name"] == "mcp__watchroom__collab_read"
    other = {**event, "tool_name": "mcp__plugin_other_watchroom__collab_read"}
    assert read_event(other) == other


def test_the_texts_name_tools_that_an_agent_has() -> None:
    tools = {name for name, tool in all_tools().items() if tool.toolset in DEFAULT_SERVER_TOOLSETS}
    pages = [*PLUGIN.glob("skills/*/SKILL.md"), AGENTS_FILE]
    assert len(pages) == 4
    named = {each for page in pages for each in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", page.read_text())}
    assert len(named) > 10
    assert named <= {*tools, "expected_version"}


def test_the_command_prints_the_folder_and_the_section(capsys: Captured) -> None:
    assert printed(capsys, "plugin", "--agents-md") == AGENTS_FILE.read_text()
    marketplace = json.loads((FOLDER / ".claude-plugin/marketplace.json").read_text())
    (plugin,) = marketplace["plugins"]
    assert (FOLDER / plugin["source"]).resolve() == PLUGIN.resolve()
    repository = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    assert (ROOT / repository["plugins"][0]["source"]).resolve() == PLUGIN.resolve()
    assert repository["name"] == marketplace["name"] == "watchroom"
