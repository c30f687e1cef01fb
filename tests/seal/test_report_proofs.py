"""A third party checks a report with Python and ssh-keygen alone: what was changed, left out or not signed is found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from calls import ok
from cli.running import Captured, printed_json, refusal
from people.conftest import DANA, EVE, STRANGER, Team
from people.conftest import team as team
from people.test_grants import ask, grant, is_approved
from watchroom.features.requests.rows import decide_all
from watchroom.history.seal import verify_report
from watchroom.kernel.call_context import CallContext

pytestmark = pytest.mark.skipif(
    not shutil.which("ssh-keygen"), reason="OpenSSH, which proofs are checked with, is not installed"
)


@pytest.fixture
def proof(team: Team, capsys: Captured) -> dict[str, Any]:
    """Of all rows since the people were enrolled: eve answers a request, alice writes a text."""
    workspace = team.workspace
    after = workspace.journal.last_seq() - 1
    ok(workspace.tools("alice"), "collab_write", filepath="计划.md", content="一\n", message="m")
    team.sign_as(EVE)
    for name in ("1", "2"):
        number = team.ask(name)
        if name == "2":
            assert workspace.sealing.write_due(Event(), at_once=True)
        workspace.requests.answer(
            CallContext("human:eve"), number, decide_all(workspace.requests.find(number), True)
        )
    until = workspace.journal.last_seq()
    ok(workspace.tools("alice"), "collab_write", filepath="later.md", content="x\n", message="m")
    assert workspace.sealing.write_due(Event(), at_once=True)
    workspace.flush()
    found = printed_json(
        capsys, "report", str(team.root), "--from", str(after), "--to", str(until), "--format", "proof"
    )
    assert len(found["rows"]) > 5
    assert found["rest"]
    assert len(found["people"]) >= 2
    return dict(found)


def check(tmp_path: Path, proof: dict[str, Any], owner: str = DANA.key.fingerprint) -> tuple[int, str]:
    """The status and output of the script, run as a stranger runs it."""
    shutil.copy(verify_report.__file__, tmp_path / "verify_report.py")
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    command = [sys.executable, "-I", "-S", "verify_report.py", "proof.json", owner]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_what_is_as_it_was_is_proven(proof: dict[str, Any], tmp_path: Path) -> None:
    status, said = check(tmp_path, proof)
    assert (status, "2 decisions" in said) == (0, True), said


def test_whatever_is_changed_is_found(proof: dict[str, Any], tmp_path: Path) -> None:
    def changed(change: str) -> dict[str, Any]:
        copy: dict[str, Any] = json.loads(json.dumps(proof))
        rows, people = copy["rows"], copy["people"]
        written = next(each for each in rows if each["content"] == "一\n")
        if change == "content":
            written["content"] = "二\n"
        elif change == "column":
            written["row"][10] = "other"
        elif change == "left out":
            rows.remove(written)
        elif change == "rest":
            copy["rest"].pop()
        elif change == "person":
            people[0]["content"] = people[0]["content"].replace("owner", "viewer")
        elif change == "revoked":
            people[0]["content"] = None
        elif change == "nobody":
            people.clear()
        elif change == "checkpoint":
            copy["checkpoint"] = copy["checkpoint"].replace("time 1", "time 2")
            copy["start"]["size"] = 0
        return copy

    for change in ("content", "column", "left out", "rest", "person", "revoked", "nobody", "checkpoint"):
        status, said = check(tmp_path, changed(change))
        assert (status, said[:10]) == (1, "NOT PROVEN"), f"{change}: {said}"


def test_a_grant_is_proven_like_an_answer(team: Team, capsys: Captured, tmp_path: Path) -> None:
    workspace = team.workspace
    after = workspace.journal.last_seq() - 1
    team.sign_as(EVE)
    grant(workspace)
    assert is_approved(workspace, ask(workspace, "1"))
    until = str(workspace.journal.last_seq())
    assert workspace.sealing.write_due(Event(), at_once=True)
    workspace.flush()
    arguments = ("report", str(team.root), "--from", str(after), "--to", until, "--format", "proof")
    found = printed_json(capsys, *arguments)
    status, said = check(tmp_path, found)
    assert (status, "1 decision" in said) == (0, True), said
    made = next(each for each in found["rows"] if each["row"][3] == "grant_calls")
    made["content"] = made["content"].replace('"uses": 3', '"uses": 9')
    assert check(tmp_path, found)[0] == 1


def test_another_owner_is_no_owner(proof: dict[str, Any], tmp_path: Path) -> None:
    status, said = check(tmp_path, proof, STRANGER.key.fingerprint)
    assert (status, "the owner is" in said) == (1, True)


def test_rows_that_no_seal_covers_cannot_be_proven(team: Team, capsys: Captured) -> None:
    assert "No seal covers" in refusal(capsys, "report", str(team.root), "--format", "proof")
