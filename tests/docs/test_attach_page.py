"""The page on agents from elsewhere, tried as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli.running import Captured
from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS, all_toolsets
from watchroom_cli.main import OK, main

PAGE = (Path(__file__).parents[2] / "docs/attach.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^    watchroom (.*)$", PAGE, flags=re.MULTILINE)]
SERVES = {"open", "mcp", "run"}
"""What does not end by itself."""


def test_the_commands_can_be_typed(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = [command for command in COMMANDS if command[0] not in SERVES]
    assert [command[0] for command in done] == [
        *("init", *["attach"] * 5, "detach", "detach", "token", "call", "attach")
    ]
    for command in done:
        if command[0] == "call":
            continue  # there is no plan.md to read
        assert printed_with_notice(capsys, *command)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".*/*") if path.is_file()}
    for name in (
        ".claude/settings.local.json",
        ".codex/config.toml",
        ".codex/hooks.json",
        ".gemini/settings.json",
    ):
        assert name in written
        assert name in PAGE
    assert (tmp_path / ".mcp.json").exists()


def printed_with_notice(capsys: Captured, *arguments: str) -> str:
    """What a command prints that may say something beside it."""
    capsys.readouterr()
    assert main(arguments) == OK
    return capsys.readouterr().out


def test_the_page_names_what_is_offered() -> None:
    assert "only `private`, `handoff` and `collab` are offered" in PAGE
    assert DEFAULT_SERVER_TOOLSETS == ("private", "handoff", "collab")
    for command in COMMANDS:
        if "--toolsets" in command:
            assert set(command[command.index("--toolsets") + 1].split(",")) <= set(all_toolsets())
