"""How each client is started: by switches, settings and a plugin that bring hooks without a file of the client."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from cli.running import as_typed
from clients.test_attached_agents import RunningClient
from watchroom import Workspace
from watchroom.agents.clients.adapter import LaunchSupport
from watchroom.agents.clients.configuration import HookProgram
from watchroom.agents.clients.launch import Launch, build_launch, remove_files, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS, hooks_of

ROOT: Final = "/repo/.git/watchroom"
HOOK: Final = HookProgram(["/bin/watch room"], curl="/usr/bin/curl", socket="/run/watchroom/service.sock")
NODE: Final = shutil.which("node")


def launched(client: str, *given: str, hook: HookProgram = HOOK, **environment: str) -> Launch:
    support: LaunchSupport = LAUNCHED_CLIENTS[client]
    return build_launch(client, support, hook, ROOT, "/run/watchroom", given, environment)


@pytest.mark.parametrize("client", LAUNCHED_CLIENTS)
def test_arguments_are_passed_on_and_no_agent_is_named(client: str) -> None:
    launch = launched(client, "-p", "two words", "", "--", "-x")
    assert launch.arguments[-5:] == ("-p", "two words", "", "--", "-x")
    everything = json.dumps([launch.arguments, dict(launch.environment), dict(launch.files)])
    assert "--agent" not in everything
    assert f"{client}*" in everything, "the mark of the agent's commands"
    assert launch == launched(client, "-p", "two words", "", "--", "-x")
    for event in hooks_of(client).events:
        assert (event in everything) is not LAUNCHED_CLIENTS[client].needs_attached


@pytest.mark.parametrize("client", LAUNCHED_CLIENTS)
def test_a_prompt_is_the_last_word_and_no_option(client: str) -> None:
    support = LAUNCHED_CLIENTS[client]
    words = launched(client, *support.work_on("--settings x", ["--model", "y"])).arguments
    option = support.prompt_option
    last = (f"{option}=--settings x",) if option else ("--", "--settings x")
    own = (*support.batch, "--model", "y", *last)
    assert words[-len(own) :] == own
    assert support.batch


@pytest.mark.parametrize("mode", ["-y", "--yolo", "--approval-mode=yolo"])
def test_gemini_gets_one_approval_mode(mode: str) -> None:
    support = LAUNCHED_CLIENTS["gemini"]
    words = launched("gemini", *support.work_on("Go", [mode])).arguments
    assert words == (mode, "--prompt=Go")
    assert launched("gemini", "-p", "Go", mode).arguments == ("-p", "Go", mode)


def test_codex_gets_its_hooks_as_toml() -> None:
    words = launched("codex").arguments
    assert {*words[::2]} == {"-c"}
    *values, plugin = words[1::2]
    assert plugin == "plugins.watchroom@watchroom.enabled=false"
    settings: Any = tomllib.loads("\n".join(values))
    assert settings["mcp_servers"]["watchroom"]["args"][-4:] == ["mcp", ROOT, "--client", "codex"]
    assert settings["shell_environment_policy"]["set"] == {"WATCHROOM_AGENT": "codex*"}
    assert settings["hooks"].keys() == hooks_of("codex").events.keys()
    (group,) = settings["hooks"]["PreToolUse"]
    assert f"hook {ROOT} --client codex" in group["hooks"][0]["command"]
    assert group["hooks"][0]["timeout"] == hooks_of("codex").timeout("PreToolUse")


def test_claude_turns_the_plugin_off_and_keeps_other_settings() -> None:
    own = json.dumps({"model": "mine", "enabledPlugins": {"other@other": True}})
    launch = launched("claude", "--settings", own)
    settings = json.loads(launch.files[launch.arguments[launch.arguments.index("--settings") + 1]])
    assert settings["model"] == "mine"
    assert settings["enabledPlugins"] == {"other@other": True, "watchroom@watchroom": False}


def test_opencode_keeps_the_settings_of_its_environment() -> None:
    own = json.dumps({"model": "mine", "plugin": ["other"], "mcp": {"other": {"type": "remote"}}})
    launch = launched("opencode", OPENCODE_CONFIG_CONTENT=own)
    settings = json.loads(launch.environment["OPENCODE_CONFIG_CONTENT"])
    (path,) = launch.files
    assert settings["model"] == "mine"
    assert settings["plugin"] == ["other", f"file://{path}"]
    assert settings["mcp"].keys() == {"other", "watchroom"}
    with pytest.raises(ValueError, match="OPENCODE_CONFIG_CONTENT"):
        launched("opencode", OPENCODE_CONFIG_CONTENT="{")


@pytest.mark.parametrize("value", ["nowhere.json", "[]", "{", ""])
def test_settings_that_are_none_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="--settings"):
        launched("claude", "--settings", value)


def test_files_are_private_and_removed_by_workspace(tmp_path: Path) -> None:
    support = LAUNCHED_CLIENTS["claude"]
    for root in ("/a", "/b"):
        launch = build_launch("claude", support, HOOK, root, str(tmp_path), (), {})
        write_files(launch.files)
        write_files(launch.files)
        assert all(Path(path).read_text() == text for path, text in launch.files.items())
    folder = tmp_path / "clients"
    assert folder.stat().st_mode & 0o077 == 0
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    assert len([*folder.iterdir()]) == 4
    remove_files(str(tmp_path), "/a")
    assert len([*folder.iterdir()]) == 2
    remove_files(str(tmp_path / "nowhere"), "/a")


DRIVER: Final = """
import { Watchroom } from "./plugin.mjs"
const plugin = await Watchroom({ client: {}, directory: process.cwd() })
await plugin.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
await plugin.event({ event: { type: "session.created", properties: { info: { id: "s2", parentID: "s1" } } } })
const seen = {}
const message = { message: { id: "m" }, parts: [{ type: "text", text: "Do it" }] }
await plugin["chat.message"]({ sessionID: "s1" }, message)
seen.parts = message.parts.map((part) => part.text)
const write = { args: { filePath: "a.txt", content: "x" } }
await plugin["tool.execute.before"]({ tool: "write", sessionID: "s2", callID: "c1" }, write)
seen.changed = write.args
const after = { output: "done" }
await plugin["tool.execute.after"]({ tool: "write", sessionID: "s2", callID: "c1", args: write.args }, after)
seen.after = after.output
const state = { status: "error", input: {} }
const failed = { type: "tool", tool: "write", sessionID: "s2", callID: "c3", state }
await plugin["tool.execute.before"]({ tool: "write", sessionID: "s2", callID: "c3" }, { args: {} })
await plugin.event({ event: { type: "message.part.updated", properties: { part: failed } } })
const next = { output: "done" }
await plugin["tool.execute.after"]({ tool: "read", sessionID: "s2", callID: "c4", args: {} }, next)
seen.next = next.output
const last = { output: "done" }
await plugin["tool.execute.after"]({ tool: "read", sessionID: "s2", callID: "c5", args: {} }, last)
seen.last = last.output
try {
  await plugin["tool.execute.before"]({ tool: "bash", sessionID: "s1", callID: "c2" }, { args: { command: "rm" } })
} catch (error) { seen.refused = error.message }
console.log(JSON.stringify(seen))
"""
ANSWERS: Final = """\
import json, sys
event = json.loads(sys.stdin.readline())
with open("events.jsonl", "a") as file:
    file.write(json.dumps(event) + "\\n")
name, own = event["hook_event_name"], {}
if name == "UserPromptSubmit":
    own = {"additionalContext": "A message"}
elif name == "PreToolUse" and event["tool_name"] == "Write":
    own = {"updatedInput": {**event["tool_input"], "content": "y"}}
elif name == "PreToolUse":
    own = {"permissionDecision": "deny", "permissionDecisionReason": "not that"}
elif name == "PostToolUse":
    own = {"additionalContext": "News"}
elif name == "PostToolUseFailure":
    own = {"additionalContext": "Not written"}
print(json.dumps({"hookSpecificOutput": own}))
"""


@pytest.mark.skipif(not NODE, reason="needs node")
def test_the_plugin_of_opencode_speaks_as_claude_code(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    (tmp_path / "driver.mjs").write_text(DRIVER)
    hook = HookProgram(["python3", str(tmp_path / "answers.py")])
    (text,) = launched("opencode", hook=hook).files.values()
    (tmp_path / "plugin.mjs").write_text(text)
    done = subprocess.run(
        [str(NODE), "driver.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == {
        "parts": ["Do it", "A message"],
        "changed": {"filePath": "a.txt", "content": "y"},
        "after": "done\n\nNews",
        "next": "done\n\nNot written\nNews",
        "last": "done\n\nNews",
        "refused": "not that",
    }
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [each["hook_event_name"] for each in events] == [
        *("SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse"),
        *("PostToolUseFailure", "PostToolUse", "PostToolUse", "PreToolUse"),
    ]
    written = events[3]
    assert (written["session_id"], written["agent_id"]) == ("s1", "s2"), "a subagent belongs to its parent"
    assert (written["tool_name"], written["tool_input"]["file_path"]) == ("Write", "a.txt")
    assert (events[-1]["tool_name"], events[-1]["tool_input"]) == ("Bash", {"command": "rm"})


QUEUED: Final = """
import { Watchroom } from "./plugin.mjs"
const plugin = await Watchroom({ client: {}, directory: process.cwd() })
const prompt = async (session) => {
  const parts = [{ type: "text", text: "And then?" }]
  await plugin["chat.message"]({ sessionID: session }, { message: { id: "m" }, parts })
}
const run = (session, callID) => ({ tool: "write", sessionID: session, callID, args: {} })
await plugin["tool.execute.before"](run("s1", "c1"), { args: {} })
await plugin["tool.execute.before"](run("s1", "c2"), { args: {} })
await plugin["tool.execute.before"](run("s2", "c3"), { args: {} })
await prompt("s1")
await plugin["tool.execute.after"](run("s1", "c1"), { output: "done" })
await prompt("s1")
await plugin.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
await prompt("s1")
await prompt("s2")
const part = { type: "tool", tool: "write", sessionID: "s1", callID: "c2", state: { status: "error", input: {} } }
await plugin.event({ event: { type: "message.part.updated", properties: { part } } })
"""


@pytest.mark.skipif(not NODE, reason="needs node")
def test_a_prompt_at_opencode_names_the_calls_that_still_run(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    (tmp_path / "driver.mjs").write_text(QUEUED)
    hook = HookProgram(["python3", str(tmp_path / "answers.py")])
    (text,) = launched("opencode", hook=hook).files.values()
    (tmp_path / "plugin.mjs").write_text(text)
    subprocess.run([str(NODE), "driver.mjs"], cwd=tmp_path, timeout=60, check=True)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    found = [each["open_calls"] for each in events if each["hook_event_name"] == "UserPromptSubmit"]
    assert found == [["c1", "c2"], ["c2"], [], ["c3"]]
    assert (events[-1]["hook_event_name"], events[-1]["tool_use_id"]) == ("PostToolUseFailure", "c2")


KILLED: Final = """
import { Watchroom } from "./plugin.mjs"
const plugin = await Watchroom({ client: {}, directory: process.cwd() })
const call = { tool: "bash", sessionID: "s1", callID: "c1" }
await plugin["tool.execute.before"](call, { args: {} }).catch((error) => console.log(error.message))
"""


@pytest.mark.skipif(not NODE, reason="needs node")
@pytest.mark.parametrize("line", ["kill -9 $$", "sh -c 'kill -9 $$'; exit $?"], ids=["shell", "program"])
def test_a_killed_hook_of_opencode_lets_no_call_through(tmp_path: Path, line: str) -> None:
    (tmp_path / "driver.mjs").write_text(KILLED)
    (text,) = launched("opencode", hook=HookProgram(["sh", "-c", line])).files.values()
    (tmp_path / "plugin.mjs").write_text(text)
    done = subprocess.run(
        [str(NODE), "driver.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() in ("refused", "Killed"), "what the shell says is the reason"


# The server of a client without a named agent


class UnnamedProject:
    """A folder in which clients have hooks and a server that name no agent."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder = folder
        self._words = (root, "--client", "claude")

    def server_command(self) -> list[str]:
        return as_typed("mcp", *self._words)

    def hook_command(self, event: str) -> list[str]:
        return as_typed("hook", *self._words)


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root) as opened:
        yield opened


def agents_by_session(workspace: Workspace) -> Mapping[str, str]:
    agents = workspace.config.agents
    paths = [step.path for agent in agents for step in workspace.session_zone.heads(agent)]
    return {session: agent for agent, _, session in (path.partition("/") for path in paths)}


@pytest.mark.slow(6)
def test_a_server_serves_the_agent_of_its_clients_hooks(
    workspace: Workspace, tmp_path: Path, service: None
) -> None:
    with ExitStack() as stack:
        project: Any = UnnamedProject(tmp_path, workspace.root)
        first = RunningClient(project, stack)
        first.hook("SessionStart")
        assert "claude1" in json.dumps(first.serve()), "the hook came first"
        assert not first.call("save_to_my_workspace", filename="a.txt", content="x")["result"]["isError"]
        second = RunningClient(project, stack)
        assert "claude2" in json.dumps(second.serve()), "there is no hook"
        second.prompt()
        assert agents_by_session(workspace) == {first.session: "claude1", second.session: "claude2"}
        first.end()
        third = RunningClient(project, stack)
        assert "claude3" in json.dumps(third.serve())
        third.session = first.session
        third.prompt()
        third.call("save_to_my_workspace", filename="b.txt", content="x")
        assert workspace.journal.version("private", "claude1/b.txt", 1) is not None
        fourth = RunningClient(project, stack)
        fourth.prompt()
        assert agents_by_session(workspace)[fourth.session] == "claude3", "nobody has worked as this agent"
