"""``watchroom machine``: workspaces on other machines in the settings, shown and answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import Captured, misuse, printed, printed_json, run
from machine_links import PROGRAM, Ssh, ask, ssh
from watchroom import Workspace
from watchroom.serving.machines.address import MAX_MACHINES
from watchroom_cli.main import OK, REFUSED
from watchroom_tui.services.settings import settings_path

__all__ = ["ssh"]
pytestmark = pytest.mark.slow(8)


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return settings_path()


def test_machines_are_added_listed_and_removed(capsys: Captured, settings: Path) -> None:
    settings.parent.mkdir(parents=True)
    settings.write_text('# mine\ntheme = "light"\n')
    printed(capsys, "machine", "add", "lab", "ssh://dana@lab.example/srv/team")
    printed(capsys, "machine", "add", "attic", "ssh://attic/~/team", "--program", "~/.venv/bin/watchroom")
    assert "lab\tssh://dana@lab.example/srv/team\n" in printed(capsys, "machine", "list")
    assert printed_json(capsys, "machine", "list", "--json")[1] == {
        "name": "attic",
        "address": "ssh://attic/~/team",
        "program": "./.venv/bin/watchroom",
    }
    assert settings.read_text().startswith('# mine\ntheme = "light"\n')
    assert "exists already" in misuse(capsys, "machine", "add", "lab", "ssh://lab/other")
    printed(capsys, "machine", "remove", "lab")
    assert "lab" not in printed(capsys, "machine", "list")
    assert "no machine is called" in misuse(capsys, "machine", "remove", "lab")


def test_invalid_machines_are_refused(capsys: Captured, settings: Path) -> None:
    assert "ssh://" in misuse(capsys, "machine", "add", "lab", "https://lab/team")
    assert "password" in misuse(capsys, "machine", "add", "lab", "ssh://dana:x@lab/team")
    assert "give a name and an address" in misuse(capsys, "machine", "add", "lab")
    assert not settings.exists()
    for number in range(MAX_MACHINES):
        printed(capsys, "machine", "add", f"m{number}", "ssh://lab/team")
    assert str(MAX_MACHINES) in misuse(capsys, "machine", "add", "more", "ssh://lab/team")
    for text in ('lab = "ssh://-x/team"', "lab = 1", 'lab = {address = "ssh://lab/team", port = 1}'):
        settings.write_text(f"[machines]\n{text}\n")
        assert "settings.toml, line 2" in misuse(capsys, "machine", "list")


def test_agents_and_needs_are_shown_and_answered(
    capsys: Captured, ssh: Ssh, root: Path, workspace: Workspace
) -> None:
    number = ask(workspace)
    printed(capsys, "machine", "add", "lab", f"ssh://lab{root}", "--program", PROGRAM)
    shown = printed(capsys, "machine", "show")
    assert "machine lab: team, connected since" in shown
    assert "lab/alice" in shown
    assert f"lab/{number}" in shown
    (view,) = printed_json(capsys, "machine", "show", "lab", "--json")
    assert (view["state"], view["needs"][0]["row"]) == ("connected", number)
    assert "+ two" in printed(capsys, "machine", "answer", f"lab/{number}")
    assert "this answer cannot be given from here" in misuse(
        capsys, "machine", "answer", f"lab/{number}", "--text", "x"
    )
    assert "accepted" in printed(capsys, "machine", "answer", f"lab/{number}", "--approve", "--as", "dana")
    status, _, err = run(capsys, "machine", "answer", f"lab/{number}", "--reject")
    assert (status, err) == (REFUSED, f"Machine lab has no open need {number}.\n")
    (row,) = [each for each in workspace.journal.rows(0) if each.tool == "answer_request"]
    assert (row.actor, row.detail["outcome"]) == ("human:dana", "approved")


def test_no_connection_is_reported(capsys: Captured, ssh: Ssh, root: Path, workspace: Workspace) -> None:
    ssh.block(True)
    printed(capsys, "machine", "add", "lab", f"ssh://lab{root}", "--program", PROGRAM)
    status, out, _ = run(capsys, "machine", "show")
    assert status != OK
    assert "machine lab: no connection since" in out
    assert "No route to host" in out


def test_an_agent_cannot_answer(
    capsys: Captured, ssh: Ssh, root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ask(workspace)
    printed(capsys, "machine", "add", "lab", f"ssh://lab{root}", "--program", PROGRAM)
    monkeypatch.setenv("WATCHROOM_AGENT", "alice")
    status, _, err = run(capsys, "machine", "answer", f"lab/{number}", "--approve")
    assert status == REFUSED
    assert "alice" in err
