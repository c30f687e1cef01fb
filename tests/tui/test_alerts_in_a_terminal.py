"""The sequences that a real terminal gets for a new need, and those that it does not get."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from pty_driver import Terminal
from tui.team import PLAN, stale_write, write
from watchroom import Toolbox, Workspace

pytestmark = pytest.mark.slow(8)

POINTER_SHAPE: Final = re.compile(rb"\x1b\]22;[a-z-]*\x07")
OSC_9: Final = re.compile(rb"\x1b\]9;[^\x07\x1b]*\x1b\\")
OSC_777: Final = re.compile(rb"\x1b\]777;[^\x07\x1b]*\x1b\\")
MARKS: Final = (
    "TMUX TERM_PROGRAM LC_TERMINAL KITTY_WINDOW_ID GHOSTTY_RESOURCES_DIR WEZTERM_PANE KONSOLE_VERSION"
)
UNKNOWN_TERMINAL: Final = dict.fromkeys(MARKS.split(), "")


OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "both": ("--alerts", "both"),
    "off": ("--alerts", "off"),
    "unasked": (),
    "tmux": ("--alerts", "desktop"),
}
Terminals = dict[str, Terminal]


def opened(root: Path, *options: str, env: dict[str, str] | None = None) -> Terminal:
    command = [sys.executable, "-m", "watchroom_cli.main", "open", str(root), *options]
    return Terminal(command, 120, 40, env={**UNKNOWN_TERMINAL, **(env or {})})


def collides(bob: Toolbox) -> None:
    """Create one conflict: a stale write, repeated several times."""
    for number in range(4):
        stale_write(bob, f"late {number}\n", 1, PLAN)


def heard(terminal: Terminal) -> tuple[int, int, int]:
    """Return the numbers of bells, OSC 9 and OSC 777."""
    raw = POINTER_SHAPE.sub(b"", terminal.raw())
    return raw.count(b"\x07"), len(OSC_9.findall(raw)), len(OSC_777.findall(raw))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    """Dashboards over one workspace with an old conflict, after alerts about a new one."""
    root = tmp_path_factory.mktemp("alerts") / "team"
    with Workspace.open(root, agents=["alice", "bob"]) as workspace, ExitStack() as stack:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        write(alice, "one\n", 0)
        write(alice, "two\n", 1)
        write(alice, "zoo\n", 0, "zoo.md")
        write(alice, "zoo 2\n", 1, "zoo.md")
        stale_write(bob, "old trouble\n", 1, "zoo.md")
        workspace.flush()
        terminals = {
            name: stack.enter_context(
                opened(root, *options, env={"TMUX": "/nowhere,1,0"} if name == "tmux" else None)
            )
            for name, options in OPTIONS.items()
        }
        for user in terminals.values():
            user.wait_for_text("1 needs you")
            user.wait_for_text("zoo.md")
            user.wait_until_idle()
        collides(bob)
        for user in terminals.values():
            user.wait_for_text("2 need you")
        terminals["both"].wait_for_bytes(b"]777;notify;Watchroom")
        terminals["unasked"].wait_for(lambda _: heard(terminals["unasked"])[0] > 0, what="the bell")
        # The same again after its alert.
        collides(bob)
        for user in terminals.values():
            user.wait_for_text("×8")
        yield terminals


def test_one_conflict_with_retries_is_one_bell_and_one_notification_of_each_kind(told: Terminals) -> None:
    assert heard(told["both"]) == (1, 1, 1)
    raw = told["both"].raw()
    assert b"bob and alice both changed plan.md" in raw
    assert not any(b"zoo.md" in each for each in OSC_9.findall(raw)), "that waited already"


def test_the_default_is_the_bell_only(told: Terminals) -> None:
    assert heard(told["unasked"]) == (1, 0, 0)


def test_under_tmux_the_notification_is_wrapped(told: Terminals) -> None:
    told["tmux"].wait_for_bytes(b"\x1bPtmux;\x1b\x1b]9;Watchroom")
    told["tmux"].wait_for_bytes(b"\x1bPtmux;\x1b\x1b]777;notify;Watchroom")


def test_off_writes_nothing_and_the_key_changes_it(told: Terminals) -> None:
    assert heard(told["off"]) == (0, 0, 0)
    told["off"].send(":")
    told["off"].wait_for_text("Search all actions")
    told["off"].send("alerts")
    told["off"].wait_for_text("Everywhere: alerts")
    told["off"].send("\r")
    told["off"].wait_for_text("Alerts: terminal bell")
