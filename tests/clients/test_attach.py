"""Setting a client up: printed, or put beside what its files have already."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli.running import Captured, misuse, printed, refusal
from clients.attached import told
from watchroom import Workspace
from watchroom.agents.clients.configuration import AttachedAs, HookProgram, build_configuration
from watchroom.history.seal.anchors import state_folder
from watchroom.texts import Language, catalogue


@pytest.fixture
def team(root: Path) -> str:
    Workspace.open(root, agents=["alice", "bob"]).close()
    return str(root)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def attach(capsys: Captured, client: str, team: str, project: Path, *more: str) -> str:
    return printed(capsys, "attach", client, team, "--agent", "alice", "--project", str(project), *more)


def read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def commands_of(hooks: Any, event: str) -> list[str]:
    return [each["command"] for group in hooks["hooks"][event] for each in group["hooks"]]


def test_without_write_nothing_is_written(capsys: Captured, team: str, project: Path) -> None:
    said = attach(capsys, "claude", team, project)
    assert ".mcp.json" in said
    assert '"--agent"' in said
    assert list(project.iterdir()) == []


def test_claude_gets_a_server_and_hooks(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "claude", team, project, "--write")
    server = read(project / ".mcp.json")["mcpServers"]["watchroom"]
    assert server["args"][-6:] == ["mcp", team, "--agent", "alice", "--client", "claude"]
    hooks = read(project / ".claude/settings.local.json")
    for event in ("PreToolUse", "PostToolUse"):
        (command,) = commands_of(hooks, event)
        assert f"hook {team} --agent alice --client claude" in command


def test_codex_gets_a_server_and_hooks(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "codex", team, project, "--write")
    server = read(project / ".codex/config.toml")["mcp_servers"]["watchroom"]
    assert server["args"][-6:] == ["mcp", team, "--agent", "alice", "--client", "codex"]
    assert len(commands_of(read(project / ".codex/hooks.json"), "PreToolUse")) == 1
    # Codex gives a server only the variables that its entry names, but gives hooks all.
    assert {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} <= {*server["env_vars"]}


def test_what_is_there_stays_and_twice_is_once(capsys: Captured, team: str, project: Path) -> None:
    (project / ".claude").mkdir()
    own = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}
    (project / ".claude/settings.local.json").write_text(
        json.dumps({"model": "own", "hooks": {"PreToolUse": [own], "Notification": []}})
    )
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"other": {"command": "other"}}}))
    (project / ".codex").mkdir()
    (project / ".codex/config.toml").write_text('# my comment\nmodel = "own"  # and another\n')
    for _ in range(2):
        for client in ("claude", "codex"):
            attach(capsys, client, team, project, "--write")
    settings = read(project / ".claude/settings.local.json")
    assert settings["model"] == "own"
    assert settings["hooks"]["Notification"] == []
    first, second = commands_of(settings, "PreToolUse")
    assert (first, "hook" in second) == ("mine", True)
    assert set(read(project / ".mcp.json")["mcpServers"]) == {"other", "watchroom"}
    text = (project / ".codex/config.toml").read_text()
    assert text.startswith('# my comment\nmodel = "own"  # and another\n')
    assert text.count("[mcp_servers.watchroom]") == 1
    assert list(tomllib.loads(text)) == ["model", "mcp_servers", "shell_environment_policy"]


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".mcp.json", "{ not json"),
        ("claude", ".claude/settings.local.json", "[]"),
        ("claude", ".mcp.json", b"\xff{}"),
        ("claude", ".mcp.json", "[" * 100_000),
        ("claude", ".claude/settings.local.json", '{"hooks": ["mine"]}'),
        ("claude", ".claude/settings.local.json", '{"hooks": {"PreToolUse": {"mine": 1}}}'),
        ("codex", ".codex/config.toml", "not = = toml"),
        ("codex", ".codex/config.toml", b"\xff"),
        ("codex", ".codex/config.toml", '[mcp_servers.watchroom]\ncommand = "another"\n'),
    ],
)
def test_a_file_that_cannot_be_merged_is_left_with_all_others(
    capsys: Captured, team: str, project: Path, client: str, name: str, text: str | bytes
) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    given = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(given)
    arguments = ("attach", client, team, "--agent", "alice", "--project", str(project), "--write")
    assert name.rpartition("/")[2] in misuse(capsys, *arguments)
    assert path.read_bytes() == given
    assert [each for each in project.rglob("*") if each.is_file()] == [path]


def add(capsys: Captured, client: str, team: str, project: Path, agent: str = "bob", *more: str) -> str:
    """Attach one more agent."""
    where = ("--project", str(project), "--write")
    return printed(capsys, "attach", client, team, "--agent", agent, *where, *more)


def attached_agents(project: Path, client: str) -> list[str]:
    """The agents that the server and all hooks of the client name alike."""
    name = ".claude/settings.local.json" if client == "claude" else ".codex/hooks.json"
    hooks = read(project / name)["hooks"]
    lines = [command for event in hooks for command in commands_of(read(project / name), event)]
    if client == "claude":
        words = read(project / ".mcp.json")["mcpServers"]["watchroom"]["args"]
    else:
        words = read(project / ".codex/config.toml")["mcp_servers"]["watchroom"]["args"]
    agents = [words[at + 1] for at, word in enumerate(words) if word == "--agent"]
    assert all(re.findall(r"--agent (\w+)", line.partition("; fi;")[0]) == agents for line in lines)
    return agents


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder: the bytes of its files, None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_another_agent_is_added_to_the_first(capsys: Captured, team: str, project: Path, client: str) -> None:
    attach(capsys, client, team, project, "--write")
    assert "alice, bob" in add(capsys, client, team, project)
    assert attached_agents(project, client) == ["alice", "bob"]
    there = contents(project)
    for agent in ("alice", "bob"):
        add(capsys, client, team, project, agent)
    assert contents(project) == there


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_one_agent_of_several_is_detached(capsys: Captured, team: str, project: Path, client: str) -> None:
    attach(capsys, client, team, project, "--write")
    alone = contents(project)
    add(capsys, client, team, project)
    where = ("--project", str(project))
    assert "alice" in printed(capsys, "detach", client, "--agent", "bob", *where)
    assert contents(project) == alone
    assert "bob" in printed(capsys, "detach", client, "--agent", "bob", *where)
    assert contents(project) == alone
    printed(capsys, "detach", client, "--agent", "alice", *where)
    assert contents(project) == {}


def test_an_agent_that_is_added_is_as_strict_as_the_others(
    capsys: Captured, team: str, project: Path
) -> None:
    attach(capsys, "claude", team, project, "--write", "--strict")
    add(capsys, "claude", team, project)
    assert read(project / ".mcp.json")["mcpServers"]["watchroom"]["args"][-1] == "--strict"
    add(capsys, "claude", team, project)
    assert "--strict" not in read(project / ".mcp.json")["mcpServers"]["watchroom"]["args"]


def test_what_would_be_written_for_a_second_agent_is_printed(
    capsys: Captured, team: str, project: Path
) -> None:
    attach(capsys, "claude", team, project, "--write")
    said = printed(capsys, "attach", "claude", team, "--agent", "bob", "--project", str(project))
    assert "--agent alice --agent bob" in said


def test_the_agent_of_a_server_alone_is_noticed(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "claude", team, project, "--write")
    (project / ".claude/settings.local.json").unlink()
    add(capsys, "claude", team, project)
    assert attached_agents(project, "claude") == ["alice", "bob"]


def test_another_workspace_does_not_take_the_place_of_the_first(
    capsys: Captured, team: str, project: Path, tmp_path: Path
) -> None:
    attach(capsys, "claude", team, project, "--write")
    other = str(tmp_path / "other")
    Workspace.open(other, agents=["alice"]).close()
    there = contents(project)
    said = misuse(capsys, "attach", "claude", other, "--agent", "alice", "--project", str(project), "--write")
    assert team in said
    assert "watchroom detach claude" in said
    assert contents(project) == there


def test_the_same_agent_can_be_attached_strictly(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "claude", team, project, "--write")
    attach(capsys, "claude", team, project, "--write", "--strict")
    (command,) = commands_of(read(project / ".claude/settings.local.json"), "PreToolUse")
    assert "--client claude --strict" in command
    assert read(project / ".mcp.json")["mcpServers"]["watchroom"]["args"][-1] == "--strict"
    printed(capsys, "detach", "claude", "--project", str(project))
    assert contents(project) == {}


def earlier_settings(team: str, agent: str = "alice") -> dict[str, Any]:
    """What an earlier version wrote into the settings that a project shares."""
    command = (
        f"/usr/bin/python3 -I -S /old/hook_client.py watchroom hook {team} --agent {agent} --client claude"
    )
    group = {"hooks": [{"type": "command", "command": command, "timeout": 60}]}
    return {"env": {"WATCHROOM_AGENT": agent}, "hooks": {"PreToolUse": [group], "Stop": [group]}}


def test_entries_of_an_earlier_version_move_to_the_personal_settings(
    capsys: Captured, team: str, project: Path
) -> None:
    shared = project / ".claude/settings.json"
    shared.parent.mkdir()
    shared.write_text(json.dumps(earlier_settings(team), indent=2) + "\n")
    attach(capsys, "claude", team, project, "--write")
    assert not shared.exists(), "it was ours alone"
    assert len(commands_of(read(project / ".claude/settings.local.json"), "PreToolUse")) == 1


def test_of_shared_settings_only_entries_of_ours_are_removed(
    capsys: Captured, team: str, project: Path
) -> None:
    shared = project / ".claude/settings.json"
    shared.parent.mkdir()
    own = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}
    mine = {"model": "own", "env": {"A": "1"}, "hooks": {"PreToolUse": [own], "Notification": []}}
    ours = earlier_settings(team)
    both: dict[str, Any] = {
        "model": "own",
        "env": {"A": "1", **ours["env"]},
        "hooks": {"PreToolUse": [own, *ours["hooks"]["PreToolUse"]], "Notification": []},
    }
    shared.write_text(json.dumps(both, indent="\t"))
    attach(capsys, "claude", team, project, "--write")
    assert shared.read_text() == json.dumps(mine, indent="\t")


def test_an_agent_of_an_earlier_version_is_noticed(capsys: Captured, team: str, project: Path) -> None:
    shared = project / ".claude/settings.json"
    shared.parent.mkdir()
    shared.write_text(json.dumps(earlier_settings(team)))
    add(capsys, "claude", team, project)
    assert attached_agents(project, "claude") == ["alice", "bob"]


THERE = {
    "nothing": {},
    "own files": {
        ".mcp.json": '{"mcpServers":{"other":{"command":"other"}}}',
        ".claude/settings.json": '{ "model":  "own" }',
        ".claude/settings.local.json": '{\n    "permissions": {"allow": []},\n    "hooks": {"Stop": []}\n}\n\n',
        ".codex/config.toml": '# mine\r\nmodel = "own"  # and\r\n\r\n\r\n[mcp_servers.other]\r\ncommand = "x"',
        ".codex/hooks.json": "",
    },
    "empty files": {".mcp.json": "{}", ".codex/config.toml": "\n", ".claude/settings.local.json": "{}\n"},
}


@pytest.mark.parametrize("there", THERE.values(), ids=THERE.keys())
@pytest.mark.parametrize("agents", [["alice"], ["alice", "alice"], ["bob", "alice"]], ids=", ".join)
def test_detach_leaves_the_folder_as_it_was(
    capsys: Captured, team: str, project: Path, there: dict[str, str], agents: list[str]
) -> None:
    for name, text in there.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    before = contents(project)
    for agent in agents:
        for client in ("claude", "codex"):
            add(capsys, client, team, project, agent)
    assert contents(project) != before
    for client in ("codex", "claude"):
        assert "no longer attached" in printed(capsys, "detach", client, "--project", str(project))
    assert contents(project) == before
    assert "not attached" in printed(capsys, "detach", "claude", "--project", str(project))


@pytest.mark.parametrize("has_record", [True, False])
def test_detach_leaves_what_others_wrote_since(
    capsys: Captured, team: str, project: Path, tmp_path: Path, has_record: bool
) -> None:
    (project / ".codex").mkdir()
    config = project / ".codex/config.toml"
    config.write_text('# mine\nmodel = "own"\n')
    for client in ("claude", "codex"):
        attach(capsys, client, team, project, "--write")
        add(capsys, client, team, project)
    local = project / ".claude/settings.local.json"
    settings = read(local)
    settings["enabledMcpjsonServers"] = ["watchroom"]
    settings["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "mine"}]})
    local.write_text(json.dumps(settings, indent=2))
    config.write_text(config.read_text() + '\n# later\n[profiles.mine]\nmodel = "other"\n')
    if not has_record:
        for record in Path(state_folder(), "attached").iterdir():
            record.unlink()
    for client in ("claude", "codex"):
        printed(capsys, "detach", client, "--project", str(project))
    assert read(local) == {
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]},
        "enabledMcpjsonServers": ["watchroom"],
    }
    assert config.read_text() == '# mine\nmodel = "own"\n\n# later\n[profiles.mine]\nmodel = "other"\n'
    assert not (project / ".mcp.json").exists()
    assert not (project / ".codex/hooks.json").exists()


def test_programs_are_named_by_absolute_paths(
    capsys: Captured, team: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client is often started from a shell that does not have the environment of this one."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for client in ("claude", "codex"):
        attach(capsys, client, team, project, "--write")
    servers = [
        read(project / ".mcp.json")["mcpServers"]["watchroom"],
        read(project / ".codex/config.toml")["mcp_servers"]["watchroom"],
    ]
    for server in servers:
        # After the interpreter, its options and the program of the relay.
        program = server["args"][3 : server["args"].index("mcp")]
        asked = subprocess.run(
            [*program, "--version"],
            env={},
            cwd="/",
            capture_output=True,
            check=False,
        )
        assert asked.returncode == 0
    for name in (".claude/settings.local.json", ".codex/hooks.json"):
        (command,) = commands_of(read(project / name), "PreToolUse")
        event = told("PreToolUse", tool_name="Write", tool_input={"file_path": f"{team}/.watchroom/a"})
        said = subprocess.run(
            ["/bin/sh", "-c", command],
            env={"XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]},
            input=json.dumps(event),
            capture_output=True,
            text=True,
            check=True,
        )
        assert '"deny"' in said.stdout


@pytest.mark.parametrize(
    ("event", "is_strict", "status"),
    [
        ("SessionStart", False, 0),
        ("UserPromptSubmit", False, 0),
        ("UserPromptSubmit", True, 0),
        ("PreToolUse", False, 1),
        ("PreToolUse", True, 2),
        ("PermissionRequest", True, 2),
        ("Stop", True, 1),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_program_that_is_gone_is_reported(
    root: Path, tmp_path: Path, event: str, is_strict: bool, status: int, language: Language
) -> None:
    missing = catalogue(language)("hook.missing", program="/gone/it's", root=str(root), client="claude")
    hook = HookProgram(["/gone/it's"], files=["/gone/it's"], missing=missing)
    wanted = build_configuration("claude", hook, AttachedAs(str(root), ("alice",), is_strict))
    (command,) = commands_of(wanted.json[".claude/settings.local.json"], event)
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == status
    said = json.loads(ended.stdout)["systemMessage"] if status == 0 else ended.stderr
    assert "/gone/it's" in said


@pytest.mark.parametrize(
    "there",
    ["", '[shell_environment_policy]\ninherit = "none"\n', "[shell_environment_policy.set]\nOWN = '1'\n"],
)
def test_the_commands_of_a_client_are_marked_where_they_can_be(
    capsys: Captured, team: str, project: Path, there: str
) -> None:
    attach(capsys, "claude", team, project, "--write")
    assert read(project / ".claude/settings.local.json")["env"] == {"WATCHROOM_AGENT": "alice"}
    (project / ".codex").mkdir()
    (project / ".codex/config.toml").write_text(there)
    attach(capsys, "codex", team, project, "--write")
    config = read(project / ".codex/config.toml")
    assert "watchroom" in config["mcp_servers"]
    policy = config["shell_environment_policy"]
    # A table that is there already cannot be opened once more.
    assert policy["set"] == ({"OWN": "1"} if "OWN" in there else {"WATCHROOM_AGENT": "alice"})


def test_a_linked_file_is_written_where_it_is(
    capsys: Captured, team: str, project: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("{}")
    kept.chmod(0o640)
    (project / ".mcp.json").symlink_to(kept)
    attach(capsys, "claude", team, project, "--write")
    assert (project / ".mcp.json").is_symlink()
    assert "watchroom" in read(kept)["mcpServers"]
    assert kept.stat().st_mode & 0o777 == 0o640


def test_who_is_not_registered_cannot_be_attached(capsys: Captured, team: str) -> None:
    assert "mallory" in refusal(capsys, "attach", "claude", team, "--agent", "mallory")


def test_what_is_left_to_do_in_the_client_is_told(capsys: Captured, team: str, project: Path) -> None:
    assert "accept the server" in attach(capsys, "claude", team, project, "--write")
    assert "trust the hooks" in attach(capsys, "codex", team, project, "--write")
    assert "trust the hooks" not in attach(capsys, "codex", team, project)
