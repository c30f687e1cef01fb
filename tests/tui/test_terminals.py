"""The dashboard in terminals with few colours, no colours, or few characters."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed
from pty_driver import Terminal
from watchroom import Workspace
from watchroom_tui.presentation.theme import ColorDepth
from watchroom_tui.terminal.session import color_depth

COLOURS = re.compile(rb"\x1b\[[0-9;]*(?<![0-9])(3[0-8]|4[0-8]|9[0-7]|10[0-7])(?![0-9])[0-9;]*m")


@pytest.fixture
def team(root: Path) -> Path:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice = workspace.tools("alice")
        ok(alice, "collab_write", filepath="港口.md", content="鹿特丹", message="计划", expected_version=0)
    return root


@pytest.mark.parametrize(
    ("environ", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "full"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({}, "16"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": ""}, "16"),
        ({"TERM": "dumb", "TEXTUAL_COLOR_SYSTEM": "truecolor"}, "full"),
    ],
)
def test_the_environment_determines_the_number_of_colours(
    environ: Mapping[str, str], depth: ColorDepth
) -> None:
    assert color_depth(environ) == depth


def test_without_colours_and_utf8_all_is_ascii_and_the_cursor_is_reversed(team: Path) -> None:
    env = {"NO_COLOR": "1", "LC_ALL": "C"}
    with Terminal(as_typed("open", str(team)), 100, 30, env=env) as terminal:
        terminal.wait_for_text("#= Needs you")
        # A byte that is not UTF-8 is a key without meaning.
        os.write(terminal._fd, b"\xe9")
        terminal.send("4")
        terminal.wait_for_text("#= Shared files")
        terminal.wait_for_text(r"# \u6e2f\u53e3.md")
        terminal.wait_until_idle()
        drawn = terminal.raw()
        assert drawn.isascii()
        assert not COLOURS.search(drawn)
        shown = terminal._screen.buffer
        row = next(n for n, line in enumerate(terminal.screen()) if line.startswith(r"# \u6e2f\u53e3.md"))
        assert all(shown[row][column].reverse for column in range(2, 20))
        terminal.send("q")
        assert terminal.wait() == 0


def test_in_16_colours_the_terminals_own_are_used(team: Path) -> None:
    with Terminal(as_typed("open", str(team)), 100, 30, env={"TERM": "xterm", "COLORTERM": ""}) as terminal:
        terminal.wait_for_text("Needs you")
        terminal.wait_until_idle()
        assert COLOURS.search(terminal.raw())
        assert not re.search(rb"[34]8;[25]", terminal.raw())


def test_a_terminal_that_cannot_move_its_cursor_is_told_what_to_use_instead(team: Path) -> None:
    controller, terminal = os.openpty()
    ended = subprocess.run(
        as_typed("open", str(team)),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "dumb"},
        timeout=30,
        check=False,
    )
    said = os.read(controller, 65_536)
    os.close(controller)
    os.close(terminal)
    assert ended.returncode == 2
    assert b"watchroom watch" in said
    assert b"\x1b" not in said


def test_what_commands_print_to_a_terminal_without_utf8_is_ascii(team: Path) -> None:
    with Terminal(as_typed("log", str(team)), 100, 30, env={"LANG": "POSIX", "LC_ALL": ""}) as terminal:
        assert terminal.wait(30) == 0
        assert terminal.raw().isascii()
        assert rb"\u6e2f\u53e3.md" in terminal.raw()
