"""``watchroom person``: from the first enrolment to a signed approval, as a person types it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from cli.running import Captured, printed, printed_json, refusal, run
from watchroom import Workspace
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.platform.signing import create_key_file
from watchroom_cli.main import REFUSED
from watchroom_tui.services.signing_keys import key_path

SESAME = "open sesame\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("sys.stdin", io.StringIO(SESAME * 20))
    return monkeypatch


@pytest.fixture
def keys(types: pytest.MonkeyPatch) -> None:
    """Give dana and eve key files whose passphrases are fast to check."""
    for name in ("dana", "eve"):
        create_key_file(key_path(name), SESAME.strip(), cost=16)


def ask(team: str) -> int:
    call = PendingCall("c1", "run_command", '{"command": "make"}')
    with Workspace.open(team) as workspace:
        path = f"alice/1/{workspace.journal.last_seq()}"
        return workspace.requests.ask(CallContext("alice"), path, Request("approve", calls=(call,))).seq


def answered(team: str, number: int) -> str | None:
    with Workspace.open(team) as workspace:
        asked = workspace.journal.row(number)
        assert asked is not None
        ended = workspace.requests.ended(asked.path)
        return ended.row.actor if ended else None


def test_the_first_person_enrols_and_signs_an_approval(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    assert "watchroom person add" in printed(capsys, "person", "list", team)
    said = printed(capsys, "person", "add", team, "dana")
    assert said.startswith("dana is the owner, with the key SHA256:")
    assert Path(key_path("dana")).exists()
    number = ask(team)
    assert printed_json(capsys, "answer", team, str(number), "--approve", "--as", "dana")["success"]
    assert answered(team, number) == "human:dana"
    listed = printed_json(capsys, "person", "list", team, "--json")
    assert listed["closed"]
    assert [(each["name"], each["role"]) for each in listed["people"]] == [("dana", "owner")]
    assert printed_json(capsys, "verify", team, "--json")["clean"]


@pytest.mark.usefixtures("keys")
def test_without_a_key_a_person_decides_nothing(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    printed(capsys, "person", "add", team, "dana")
    number = ask(team)
    status, out, _ = run(capsys, "answer", team, str(number), "--approve", "--as", "mallory")
    assert (status, "signature_required" in out) == (REFUSED, True)
    types.setattr("sys.stdin", io.StringIO("guessed\n"))
    assert "passphrase" in refusal(capsys, "answer", team, str(number), "--approve", "--as", "dana")
    assert answered(team, number) is None


@pytest.mark.usefixtures("keys")
def test_an_owner_enrols_and_revokes_others(capsys: Captured, team: str, types: pytest.MonkeyPatch) -> None:
    printed(capsys, "person", "add", team, "dana")
    assert "person key" in run(capsys, "person", "add", team, "eve", "--as", "dana")[2]
    line = printed(capsys, "person", "key", team, "eve").strip()
    assert "supervisor" in printed(capsys, "person", "add", team, "eve", "--key", line, "--as", "dana")
    number = ask(team)
    printed_json(capsys, "answer", team, str(number), "--reject", "no", "--as", "eve")
    assert answered(team, number) == "human:eve"
    assert "eve" in refusal(capsys, "person", "add", team, "mallory", "--key", line, "--as", "eve")
    assert "eve" in printed(capsys, "person", "revoke", team, "eve", "--as", "dana")
    number = ask(team)
    assert run(capsys, "answer", team, str(number), "--approve", "--as", "eve")[0] == REFUSED
    assert "open" in printed(capsys, "person", "revoke", team, "dana", "--as", "dana")
    printed_json(capsys, "answer", team, str(number), "--approve", "--as", "anybody")
    assert answered(team, number) == "human:anybody"


@pytest.mark.usefixtures("keys")
def test_an_owner_makes_tokens_but_an_agents_shell_cannot(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    printed(capsys, "person", "add", team, "dana")
    token = run(capsys, "token", team, "alice", "--as", "dana")[1].strip()
    with Workspace.open(team) as workspace:
        assert workspace.access.authenticate(token) == "alice"
    types.setattr("watchroom.agents.clients.processes.find_parent_agent", lambda root, environ: "alice")
    assert "alice" in refusal(capsys, "token", team, "alice", "--as", "dana")


def test_a_person_with_a_key_is_told_how_to_close_a_new_workspace(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "dana")
    root = str(tmp_path / "new")
    assert run(capsys, "init", root, "--agent", "alice")[2] == ""
    create_key_file(key_path("dana"), "sesame", cost=16)
    assert f"watchroom person add {root} dana" in run(capsys, "init", root)[2]


def test_an_agents_shell_cannot_enrol_people(capsys: Captured, team: str, types: pytest.MonkeyPatch) -> None:
    types.setattr("watchroom.agents.clients.processes.find_parent_agent", lambda root, environ: "alice")
    assert "alice" in refusal(capsys, "person", "add", team, "dana")
    assert not printed_json(capsys, "person", "list", team, "--json")["closed"]


@pytest.mark.usefixtures("keys")
def test_closing_a_workspace_signs_its_settings(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    assert "the settings of config.toml are " in printed(capsys, "settings", team)
    printed(capsys, "person", "add", team, "dana")
    config = Path(team, ".watchroom/config.toml")
    config.write_text('allowed_hosts = ["example.org"]\n' + config.read_text())
    shown = printed(capsys, "settings", team)
    assert "Signed by dana" in shown
    assert '+    "example.org",' in shown
    assert printed_json(capsys, "settings", team, "--json")["unsigned"] == ["allowed_hosts"]
    assert run(capsys, "settings", team, "--sign", "--as", "mallory")[0] == 1
    assert "are now active" in printed(capsys, "settings", team, "--sign", "--as", "dana")
    assert "Nothing to sign" in printed(capsys, "settings", team, "--sign", "--as", "dana")
    assert "example.org" in printed_json(capsys, "settings", team, "--json")["settings"]
    printed(capsys, "person", "revoke", team, "dana", "--as", "dana")
    assert "the settings of config.toml are " in printed(capsys, "settings", team)


@pytest.mark.usefixtures("keys")
def test_a_key_is_exchanged_by_its_owner(capsys: Captured, team: str, types: pytest.MonkeyPatch) -> None:
    printed(capsys, "person", "add", team, "dana")
    line = printed(capsys, "person", "key", team, "eve").strip()
    printed(capsys, "person", "add", team, "eve", "--key", line, "--as", "dana", "--tools", "run_*")
    before = Path(key_path("eve")).read_text()
    assert "eve now has the key" in printed(capsys, "person", "rotate", team, "eve")
    assert Path(key_path("eve") + ".old").read_text() == before
    number = ask(team)
    printed_json(capsys, "answer", team, str(number), "--approve", "--as", "eve")
    assert answered(team, number) == "human:eve"
    old = key_path("eve") + ".old"
    status, out, _ = run(capsys, "answer", team, str(ask(team)), "--approve", "--as", "eve", "--key", old)
    assert (status, "may_not_decide" in out) == (REFUSED, True)
    assert printed_json(capsys, "verify", team, "--json")["clean"]


@pytest.mark.usefixtures("keys")
def test_a_key_of_several_workspaces_is_exchanged_in_each(
    capsys: Captured, team: str, types: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    printed(capsys, "init", other, "--agent", "alice")
    for each in (team, other):
        printed(capsys, "person", "add", each, "dana")
    printed(capsys, "person", "rotate", team, "dana")
    assert run(capsys, "answer", other, str(ask(other)), "--approve", "--as", "dana")[0] == REFUSED
    printed(capsys, "person", "rotate", other, "dana")
    for each in (team, other):
        printed_json(capsys, "answer", each, str(ask(each)), "--approve", "--as", "dana")


@pytest.mark.usefixtures("keys")
def test_a_lost_key_is_exchanged_with_the_recovery_key(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    printed(capsys, "person", "add", team, "dana")
    code = run(capsys, "person", "recovery", team, "dana")[1].strip()
    Path(key_path("dana")).unlink()
    types.setattr("sys.stdin", io.StringIO("AAAA\n"))
    assert "Not a recovery key" in run(capsys, "person", "rotate", team, "dana", "--lost")[2]
    types.setattr("sys.stdin", io.StringIO(f"{code.lower()}\n{SESAME}{SESAME}"))
    printed(capsys, "person", "rotate", team, "dana", "--lost")
    number = ask(team)
    printed_json(capsys, "answer", team, str(number), "--approve", "--as", "dana")
    assert answered(team, number) == "human:dana"
    (listed,) = printed_json(capsys, "person", "list", team, "--json")["people"]
    assert len(listed["keys"]) == 2


@pytest.mark.usefixtures("keys")
def test_decisions_before_a_revocation_can_be_disputed(
    capsys: Captured, team: str, types: pytest.MonkeyPatch
) -> None:
    printed(capsys, "person", "add", team, "dana")
    line = printed(capsys, "person", "key", team, "eve").strip()
    printed(capsys, "person", "add", team, "eve", "--key", line, "--as", "dana")
    first, second = ask(team), ask(team)
    printed_json(capsys, "answer", team, str(first), "--approve", "--as", "eve")
    with Workspace.open(team) as workspace:
        since = workspace.journal.last_seq()
    printed_json(capsys, "answer", team, str(second), "--approve", "--as", "eve")
    printed(capsys, "person", "revoke", team, "eve", "--as", "dana", "--since", str(since))
    status, out, _ = run(capsys, "verify", team, "--json")
    (problem,) = json.loads(out)["problems"]
    assert (status, "answer_request by human:eve is disputed by human:dana" in problem["what"]) == (1, True)
    assert answered(team, second) == "human:eve"
