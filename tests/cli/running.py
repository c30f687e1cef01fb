"""Run commands as they are typed, and check their exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from watchroom_cli.main import OK, REFUSED, USAGE, main

Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    """Return the status, standard output and standard error of a command."""
    capsys.readouterr()
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def printed(capsys: Captured, *arguments: str) -> str:
    """Return the output of a command that must succeed without errors."""
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (OK, "")
    return out


def printed_json(capsys: Captured, *arguments: str) -> Any:
    return json.loads(printed(capsys, *arguments))


def printed_rows(capsys: Captured, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(capsys, *arguments).splitlines()]


def refusal(capsys: Captured, *arguments: str) -> str:
    """Return the error text of a command that must be refused."""
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (REFUSED, "")
    return err


def misuse(capsys: Captured, *arguments: str) -> str:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (USAGE, "")
    return err


def as_typed(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "watchroom_cli.main", *arguments]


def spawned(
    *arguments: str, given: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        as_typed(*arguments),
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        timeout=60,
        check=False,
    )


def row_of(capsys: Captured, team: str, tool: str, nth: int = 0) -> dict[str, Any]:
    return printed_rows(capsys, "log", team, "--json", "--tool", tool)[nth]
