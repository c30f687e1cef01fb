"""Texts of agents and callers in JSON and messages: escaped in a terminal, unchanged in a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.running import as_typed, spawned
from watchroom import Workspace
from watchroom_tui.presentation.sanitize import escape_invisible

HOSTILE = (
    "\x1b]0;title\x07 \x9b31m \x85 \x7f \u202etxt.exe\u2066 \u200b\u200d\ufeff\u00ad \u2028 \U000e0041 \ue000"
    "\ufe0f\u3164"
)
HARMLESS = "é 中文\u3000。 ❤ 👍 \u00a0«»"


MANY = """
import json, sys
from watchroom_cli.main import main
for arguments in json.loads(sys.argv[1]):
    main(arguments)
    print(sys.argv[2], flush=True)
"""
"""Runs several commands one after the other, each as if alone."""


def printed_to_terminal(*arguments: str) -> str:
    """Return what a command prints to a terminal, on standard output and error."""
    return shown_in_terminal(as_typed(*arguments))


def all_printed_to_terminal(*commands: Sequence[str]) -> list[str]:
    """Return what each of the commands prints to a terminal."""
    between = "-- next --"
    shown = shown_in_terminal([sys.executable, "-c", MANY, json.dumps(commands), between])
    return shown.split(f"{between}\n")[:-1]


def shown_in_terminal(command: Sequence[str]) -> str:
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "PYTHONUTF8": "1", "COLUMNS": "1000"},
    )
    os.close(terminal)
    seen = b""
    try:
        while data := os.read(controller, 65_536):
            seen += data
    except OSError:  # EIO: the other end is closed
        pass
    finally:
        os.close(controller)
    process.wait()
    return seen.decode().replace("\r\n", "\n")


@pytest.fixture
def team(root: Path) -> str:
    with Workspace.open(root, agents=["alice"]) as workspace:
        message = {"filename": "a.md", "content": HOSTILE, "message": HOSTILE + HARMLESS}
        assert workspace.tools("alice").dispatch_tool_call("save_to_my_workspace", message)["success"]
    return str(root)


def is_visible(text: str) -> bool:
    return all(each in "\n\t\u00a0\u3000" or each.isprintable() for each in text)


@pytest.mark.parametrize(
    "command",
    [
        ("log", "{}", "--json"),
        ("call", "{}", "alice", "read_from_workspace", '{"agent_id": "alice", "filename": "a.md"}'),
    ],
    ids=["log", "call"],
)
def test_json_is_escaped_in_a_terminal_and_means_the_same(team: str, command: tuple[str, ...]) -> None:
    arguments = [each.replace("{}", team) if each == "{}" else each for each in command]
    shown = printed_to_terminal(*arguments)
    assert is_visible(shown)
    assert "\\u202e" in shown
    piped = spawned(*arguments).stdout
    assert not is_visible(piped)
    if command[0] == "call":
        assert json.loads(shown) == json.loads(piped)
    else:
        assert [json.loads(each) for each in shown.split("\n")[:-1]] == [
            json.loads(each) for each in piped.split("\n")[:-1]
        ]


def test_visible_characters_are_not_escaped(team: str) -> None:
    shown = printed_to_terminal("log", team, "--json", "--zone", "private")
    assert HARMLESS in shown


REPEATED = {
    "folder": ("log", "{}-" + HOSTILE.replace("\x00", "")),
    "time": ("log", "{}", "--since", HOSTILE),
    "agent": ("call", "{}", HOSTILE, "collab_list"),
    "out": ("export", "{}", "{}-out" + HOSTILE),
    "unknown argument": ("open", "{}", HOSTILE),
    "command": (HOSTILE,),
    "choice": ("log", "{}", "--zone", HOSTILE),
}


def test_arguments_are_repeated_in_escapes(team: str) -> None:
    commands = [[each.replace("{}", team) for each in arguments] for arguments in REPEATED.values()]
    for name, shown in zip(REPEATED, all_printed_to_terminal(*commands), strict=True):
        assert is_visible(shown), (name, shown)
        assert "202e" in shown.lower(), name


def test_every_invisible_character_is_escaped_as_json_would() -> None:
    for code in (*range(0x3000), *range(0xD800, 0x10000), *range(0xE0000, 0xE0200), 0x10FFFF):
        character = chr(code)
        shown = escape_invisible(character)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            assert shown.isascii(), hex(code)
            if character not in "\n\t":
                assert json.loads(f'"{shown}"') == character, hex(code)
