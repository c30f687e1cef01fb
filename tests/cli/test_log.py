"""``watchroom log``: print, filter and follow rows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import pytest
from calls import ok, refused
from cli.running import Captured, as_typed, misuse, printed, printed_rows, refusal
from watchroom import Workspace
from watchroom.features.calls.tool_registry import all_tools
from watchroom.features.sessions.rows import FORK_SESSION
from watchroom.kernel.zones import ZONES
from watchroom.model import Row, Zone
from watchroom_cli.main import OK
from watchroom_tui.formatters import labels
from watchroom_tui.presentation.localization import load_texts

CHANGING: Final = [name for name, tool in all_tools().items() if not tool.annotations.reads_only]
"""The tools that can change something."""


def note(tool: str, zone: Zone) -> Row:
    """A row of a person without a version."""
    return Row(1, 1, "human:dana", tool, zone, "a", None, 3, "ok", "", "", None, None, "")


def test_log_prints_rows_oldest_first_as_lines_or_as_json(capsys: Captured, team: str) -> None:
    rows = printed_rows(capsys, "log", team, "--json")
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    lines = printed(capsys, "log", team).splitlines()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert datetime.fromisoformat(line[:29]) == datetime.fromisoformat(row["time"])
        assert row["actor"] in line
    assert any(load_texts("en")("row.conflict", base=1, current=2) in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--agent", "bob"), ["collab_write", "save_to_my_workspace", "save_to_my_workspace"]),
        (("--zone", "handoff"), ["handoff_file"]),
        (("--path", "lan.m"), ["collab_write"] * 3),
        (("--tool", "handoff_file"), ["handoff_file"]),
        (("--outcome", "denied"), ["save_to_my_workspace"]),
        (("--agent", "bob", "--outcome", "conflict"), ["collab_write"]),
        (("--limit", "1"), ["save_to_my_workspace"]),
        (("--since", "2200-01-01T00:00:00Z"), []),
        (("--since", "2000-01-01", "--zone", "handoff"), ["handoff_file"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_log_filters(capsys: Captured, team: str, arguments: tuple[str, ...], expected: list[str]) -> None:
    assert [row["tool"] for row in printed_rows(capsys, "log", team, "--json", *arguments)] == expected


@pytest.mark.parametrize("tool", [*CHANGING, FORK_SESSION])
def test_a_change_without_a_version_is_not_shown_as_a_read(tool: str) -> None:
    texts = load_texts("en")
    # Rows of a command show its state.
    for zone in (zone for zone, spec in ZONES.items() if not spec.is_read and zone != "command"):
        shown = labels.outcome_span(note(tool, zone), texts).text
        assert shown.startswith("✓"), (zone, shown)


@pytest.mark.parametrize("tool", [name for name in all_tools() if name not in CHANGING])
def test_a_read_is_shown_as_a_read(tool: str) -> None:
    for zone in (zone for zone, spec in ZONES.items() if spec.is_read):
        assert labels.outcome_span(note(tool, zone), load_texts("en")).text == "read v3"


def test_log_with_an_invalid_time_or_outcome_is_wrong_usage(capsys: Captured, team: str) -> None:
    assert "'yesterday'" in misuse(capsys, "log", team, "--since", "yesterday")
    assert "--outcome" in misuse(capsys, "log", team, "--outcome", "bad")


def test_log_shows_texts_of_agents_escaped(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filename": "x.md", "content": "", "message": "a\x1b[31mb\x9bc\u202ed\ne"})
    printed(capsys, "call", team, "alice", "save_to_my_workspace", arguments)
    line = printed(capsys, "log", team, "--limit", "1").removesuffix("\n")
    assert line.isprintable()
    assert "␛[31mb" in line


@pytest.mark.parametrize("more", [(), ("--json",), ("--follow",)], ids=" ".join)
def test_log_of_an_unknown_actor_is_refused(capsys: Captured, team: str, more: tuple[str, ...]) -> None:
    message = refusal(capsys, "log", team, "--agent", "nobody", *more)
    assert "Unknown agent 'nobody'" in message
    assert "alice, bob, charlie" in message


def test_log_of_an_idle_agent_is_empty(capsys: Captured, team: str) -> None:
    assert printed(capsys, "log", team, "--agent", "charlie") == "No operation matches.\n"
    assert printed(capsys, "log", team, "--agent", "system", "--zone", "handoff", "--json") == ""


@contextmanager
def following(*arguments: str) -> Iterator[Iterator[str]]:
    """Yield the lines of a command that does not end, as they come."""
    with subprocess.Popen(
        as_typed(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout.readline, "")
        finally:
            process.kill()


def test_log_follow_prints_rows_of_other_processes_that_pass_the_filter(capsys: Captured, team: str) -> None:
    with following("log", team, "--follow", "--json", "--agent", "alice", "--limit", "1") as lines:
        assert json.loads(next(lines))["tool"] == "handoff_file"
        for agent, name in (("bob", "his.md"), ("alice", "hers.md")):
            arguments = json.dumps({"filename": name, "content": "x"})
            printed(capsys, "call", team, agent, "save_to_my_workspace", arguments)
        assert json.loads(next(lines))["path"] == "alice/hers.md"


def test_log_ends_quietly_when_its_reader_closes_the_pipe(team: str) -> None:
    with Workspace.open(team, scan=False) as workspace:
        alice = workspace.tools("alice")
        for n in range(300):
            ok(alice, "save_to_my_workspace", filename=f"{n % 3}.md", content="x", message="m" * 500)
    with subprocess.Popen(
        as_typed("log", team, "--json", "--limit", "1000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == OK


def test_log_follow_ends_when_its_reader_closes_the_pipe(team: str) -> None:
    with subprocess.Popen(
        as_typed("log", team, "--follow", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        # No more rows come that would reveal it.
        assert process.wait(30) == OK
        assert process.stderr.read() == b""


def test_only_edits_with_an_open_choice_are_logged_as_choosing(capsys: Captured, team: str) -> None:
    with Workspace.open(team) as workspace:
        alice = workspace.tools("alice")
        ok(alice, "open_buffer", source="private", path="new.md", name="new")
        ok(alice, "new_append", text="a a")
        refused(alice, "new_replace", old_text="a", new_text="b")
        ok(alice, "new_flush")
    *_, choice, flush = printed(capsys, "log", team, "--zone", "buffer").splitlines()
    assert "choosing" in choice
    assert "choosing" not in flush
