"""Unwritable standard output: a command still does its work, and its status reports the loss."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.running import Captured, as_typed, printed_json, printed_rows
from watchroom import Workspace
from watchroom_cli.main import OK, REFUSED

WRITE = '{"filepath": "new.md", "content": "x", "message": "m", "expected_version": 0}'
READ_NOTHING = '{"filepath": "none.md"}'


def run_into(output: int, *arguments: str) -> tuple[int, str]:
    """Return the status and standard error of a command with the descriptor ``output`` as standard output."""
    done = subprocess.run(
        as_typed(*arguments), stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


def run_full(*arguments: str) -> tuple[int, str]:
    with open("/dev/full", "w") as full:
        return run_into(full.fileno(), *arguments)


def run_unread(*arguments: str) -> tuple[int, str]:
    """Return the same for a pipe whose reader is closed."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        return run_into(writes, *arguments)
    finally:
        os.close(writes)


ACTS: list[tuple[list[str], Callable[[Path], bool]]] = [
    (["init", "{team}", "--agent", "zoe"], lambda team: "zoe" in agents_of(team)),
    (["call", "{team}", "alice", "collab_write", WRITE], lambda team: "new.md" in paths_of(team)),
    (["export", "{team}", "{team}-export"], lambda team: Path(f"{team}-export/README.md").parent.exists()),
    (["fork", "{team}", "{team}-fork"], lambda team: "alice" in agents_of(Path(f"{team}-fork"))),
    (["token", "{team}", "alice"], lambda team: token_count(team) == 1),
    (["revert", "{team}", "--agent", "alice", "--since", "0"], lambda team: "revert" in tools_of(team)),
]


def agents_of(root: Path) -> list[str]:
    with Workspace.open(root, create=False) as workspace:
        return list(workspace.config.agents)


def paths_of(root: Path) -> list[str]:
    with Workspace.open(root, create=False) as workspace:
        return [head.path for head in workspace.journal.heads("collab")]


def token_count(root: Path) -> int:
    with Workspace.open(root, create=False) as workspace:
        return len(workspace.access.list())


def tools_of(root: Path) -> str:
    with Workspace.open(root, create=False) as workspace:
        return " ".join(row.tool for row in workspace.journal.rows(0))


@pytest.mark.parametrize(("typed", "is_done"), ACTS, ids=[typed[0] for typed, _ in ACTS])
@pytest.mark.parametrize("run", [run_full, run_unread])
def test_unwritable_output_does_not_undo_a_command(
    team: str, run: Callable[..., tuple[int, str]], typed: list[str], is_done: Callable[[Path], bool]
) -> None:
    status, said = run(*(each.format(team=team) if "{team}" in each else each for each in typed))
    assert is_done(Path(team))
    assert "Nothing was changed" not in said
    assert "Traceback" not in said
    if run is run_full:
        assert status == REFUSED
        assert "The command succeeded, but its output could not be written: No space left" in said
    else:
        assert status == OK
        assert "output" not in said


@pytest.mark.parametrize("run", [run_full, run_unread])
def test_a_refusal_with_unwritable_output_is_a_failure(
    team: str, run: Callable[..., tuple[int, str]]
) -> None:
    status, said = run("call", team, "alice", "collab_read", READ_NOTHING)
    assert status == REFUSED
    assert ("The command failed" in said) == (run is run_full)


@pytest.mark.parametrize("run", [run_full, run_unread])
@pytest.mark.parametrize("typed", [["log", "--follow"], ["watch"]])
def test_following_commands_end_with_unwritable_output(
    team: str, run: Callable[..., tuple[int, str]], typed: list[str]
) -> None:
    status, said = run(typed[0], team, *typed[1:])
    assert status == (REFUSED if run is run_full else OK)
    assert "Traceback" not in said


def test_unwritable_standard_error_changes_nothing(team: str, capsys: Captured) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(as_typed("show", team, "nothing"), stderr=full, timeout=60, check=False)
        assert done.returncode == 2
        done = subprocess.run(
            as_typed("call", team, "alice", "collab_write", WRITE),
            stdout=subprocess.PIPE,
            stderr=full,
            timeout=60,
            check=False,
        )
    assert done.returncode == OK
    assert printed_rows(capsys, "log", team, "--json", "--path", "new.md")
    assert printed_json(capsys, "show", team, "files", "--json")
