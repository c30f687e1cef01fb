"""The page on agents from elsewhere, tried as it is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.running import Captured
from watchroom.agents.clients.registry import ADAPTERS
from watchroom.agents.clients.supervision import ASPECTS
from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS, all_toolsets
from watchroom_cli.agents.client import ClientWay, list_ways, other_way
from watchroom_cli.main import OK, main
from watchroom_tui.presentation.localization import load_texts

PAGE = (Path(__file__).parents[2] / "docs/attach.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^    watchroom (.*)$", PAGE, flags=re.MULTILINE)]
SERVES = {"open", "mcp", "run"}
"""What does not end by itself."""


def test_the_commands_can_be_typed(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = [command for command in COMMANDS if command[0] not in SERVES]
    assert [command[0] for command in done] == [
        *("init", *["attach"] * 4, "plugin", "attach", "detach", "detach"),
        *(*["client"] * 3, "token", "call", "attach"),
    ]
    for command in done:
        if command[0] == "call" or "--update" in command:
            continue  # there is no plan.md to read, and no network
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


def test_the_tables_of_clients_are_those_of_their_records() -> None:
    texts = load_texts("en")
    ways = [way for each in ADAPTERS for way in list_ways(each, texts)]
    other = other_way("NAME", texts)
    assert table_of([each for each in ways if " run " not in each.command]) in PAGE
    assert table_of([*(each for each in ways if " run " in each.command), other]) in PAGE


def table_of(ways: Sequence[ClientWay]) -> str:
    """Return the table of the page about ``ways``."""
    texts = load_texts("en")
    rows = [["", *(f"`{each.command}`" for each in ways)]]
    rows.append(["Tried with version", *(each.tried or "not tried" for each in ways)])
    rows += [[texts(f"client.aspect.{aspect}"), *(each.can[aspect] for each in ways)] for aspect in ASPECTS]
    head, *rest = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in rows]
    return "\n".join([head, "|---" * (len(ways) + 1) + "|", *rest])


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
