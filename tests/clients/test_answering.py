"""Who may answer what an attached agent asks: a person, and not the agent's own shell, as far as that shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.running import Captured, as_typed, printed, run
from pty_driver import Terminal
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Row
from watchroom_cli.main import OK, REFUSED

pytestmark = pytest.mark.usefixtures("service")

PATIENCE = 30
CLIENT = """
import subprocess, sys
server, command = sys.argv[1].split("|"), sys.argv[2].split("|")
with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as serving:
    sys.exit(subprocess.run(["/bin/sh", "-c", '"$@"; exit $?', "sh", *command]).returncode)
"""


@pytest.fixture(autouse=True)
def _unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)


@pytest.fixture
def asked(root: Path) -> tuple[str, str]:
    """A workspace and the number of a request in it."""
    with Workspace.open(root, agents=["alice"]) as workspace:
        call = PendingCall("call", "save_to_my_workspace", json.dumps({"filename": "a.md", "content": "x"}))
        row = workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("approve", calls=(call,)))
    return str(root), str(row.seq)


def answers(root: str) -> list[Row]:
    with Workspace.open(root, scan=False) as workspace:
        return [row for row in workspace.journal.rows(limit=10_000) if row.tool == ANSWER]


def beneath_client(root: str, number: str, served: str) -> subprocess.CompletedProcess[str]:
    """``answer``, run by the shell of a client that began a server for the workspace ``served``."""
    server = as_typed("mcp", served, "--agent", "alice")
    command = as_typed("answer", root, number, "--approve", "--as", "dana")
    return subprocess.run(
        [sys.executable, "-c", CLIENT, "|".join(server), "|".join(command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_an_answer_with_the_mark_of_a_client_is_refused(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, str]
) -> None:
    root, number = asked
    monkeypatch.setenv(AGENT_VARIABLE, "alice")
    status, out, _ = run(capsys, "answer", root, number, "--approve", "--as", "dana")
    told: dict[str, Any] = json.loads(out)
    assert (status, told["error"]) == (REFUSED, "agent_cannot_answer")
    assert "'alice'" in told["message"]
    (row,) = answers(root)
    assert (row.actor, row.outcome, row.error) == ("human:dana", "denied", "agent_cannot_answer")
    assert "filename: a.md" in printed(capsys, "answer", root, number), "it may be looked at"
    monkeypatch.delenv(AGENT_VARIABLE)
    assert run(capsys, "answer", root, number, "--approve")[0] == OK, "it is still open"


def test_an_answer_beneath_a_client_is_refused(asked: tuple[str, str]) -> None:
    root, number = asked
    ended = beneath_client(root, number, root)
    assert (ended.returncode, json.loads(ended.stdout)["error"]) == (REFUSED, "agent_cannot_answer")


def test_an_answer_beneath_a_client_of_another_workspace_is_none_of_its_business(
    asked: tuple[str, str], tmp_path: Path
) -> None:
    root, number = asked
    Workspace.open(tmp_path / "other", agents=["alice"]).close()
    ended = beneath_client(root, number, str(tmp_path / "other"))
    assert (ended.returncode, json.loads(ended.stdout)["outcome"]) == (OK, "approved")


def test_the_row_of_an_answer_says_that_there_was_no_terminal(asked: tuple[str, str]) -> None:
    root, number = asked
    command = as_typed("answer", root, number, "--reject", "no")
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True)
    (row,) = answers(root)
    assert row.detail["terminal"] is False


def test_the_row_of_an_answer_says_that_there_was_a_terminal(asked: tuple[str, str]) -> None:
    root, number = asked
    environment = {name: value for name, value in os.environ.items() if name != AGENT_VARIABLE}
    with Terminal(as_typed("answer", root, number, "--approve"), env=environment) as terminal:
        assert terminal.wait(PATIENCE) == OK
    (row,) = answers(root)
    assert row.detail["terminal"] is True
