"""Setting a client up: printed, or put beside what its files have already."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli.running import Captured, misuse, printed, refusal
from watchroom import Workspace


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
    assert server["args"] == ["mcp", team, "--agent", "alice", "--client", "claude"]
    hooks = read(project / ".claude/settings.json")
    for event in ("PreToolUse", "PostToolUse"):
        (command,) = commands_of(hooks, event)
        assert command.endswith(f"hook {team} --agent alice --client claude")


def test_codex_gets_a_server_and_hooks(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "codex", team, project, "--write")
    server = read(project / ".codex/config.toml")["mcp_servers"]["watchroom"]
    assert server["args"] == ["mcp", team, "--agent", "alice", "--client", "codex"]
    assert len(commands_of(read(project / ".codex/hooks.json"), "PreToolUse")) == 1


def test_what_is_there_stays_and_twice_is_once(capsys: Captured, team: str, project: Path) -> None:
    (project / ".claude").mkdir()
    own = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}
    (project / ".claude/settings.json").write_text(
        json.dumps({"model": "own", "hooks": {"PreToolUse": [own], "Notification": []}})
    )
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"other": {"command": "other"}}}))
    (project / ".codex").mkdir()
    (project / ".codex/config.toml").write_text('# my comment\nmodel = "own"  # and another\n')
    for _ in range(2):
        for client in ("claude", "codex"):
            attach(capsys, client, team, project, "--write")
    settings = read(project / ".claude/settings.json")
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
        ("claude", ".claude/settings.json", "[]"),
        ("claude", ".mcp.json", b"\xff{}"),
        ("claude", ".mcp.json", "[" * 100_000),
        ("claude", ".claude/settings.json", '{"hooks": ["mine"]}'),
        ("claude", ".claude/settings.json", '{"hooks": {"PreToolUse": {"mine": 1}}}'),
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


def test_another_agent_takes_the_place_of_the_first(capsys: Captured, team: str, project: Path) -> None:
    attach(capsys, "claude", team, project, "--write")
    settings = read(project / ".claude/settings.json")
    settings["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine"})
    (project / ".claude/settings.json").write_text(json.dumps(settings))
    printed(capsys, "attach", "claude", team, "--agent", "bob", "--project", str(project), "--write")
    assert read(project / ".mcp.json")["mcpServers"]["watchroom"]["args"][3] == "bob"
    hooks = read(project / ".claude/settings.json")
    first, second = commands_of(hooks, "PreToolUse")
    assert (first, second.endswith("--agent bob --client claude")) == ("mine", True)
    (told,) = commands_of(hooks, "PostToolUse")
    assert told.endswith("--agent bob --client claude")


@pytest.mark.parametrize(
    "there",
    ["", '[shell_environment_policy]\ninherit = "none"\n', "[shell_environment_policy.set]\nOWN = '1'\n"],
)
def test_the_commands_of_a_client_are_marked_where_they_can_be(
    capsys: Captured, team: str, project: Path, there: str
) -> None:
    attach(capsys, "claude", team, project, "--write")
    assert read(project / ".claude/settings.json")["env"] == {"WATCHROOM_AGENT": "alice"}
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
    assert "say yes to the server" in attach(capsys, "claude", team, project, "--write")
    assert "trust the hooks" in attach(capsys, "codex", team, project, "--write")
    assert "trust the hooks" not in attach(capsys, "codex", team, project)
