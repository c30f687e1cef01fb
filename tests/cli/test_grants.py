"""``watchroom answer --scope``, and ``watchroom policy grants`` and ``revoke``."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import Captured, misuse, printed, printed_json, run
from watchroom import Workspace
from watchroom.features.policy.grants import PLACE
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom_cli.main import REFUSED


def ask(root: str, folder: Path, name: str, command: str = "npm test") -> int:
    call = PendingCall("c", "Bash", json.dumps({"command": command}))
    request = Request("approve", calls=(call,), metadata={PLACE: {"folder": str(folder), "target": ""}})
    with Workspace.open(root, create=False) as workspace:
        return workspace.requests.ask(CallContext("alice"), f"alice/s1/{name}", request).seq


def state(root: str, name: str) -> str:
    with Workspace.open(root, create=False) as workspace:
        ended = workspace.requests.find_end(f"alice/s1/{name}")
        return ended.actor if ended is not None else ""


def test_a_call_is_approved_and_granted_listed_explained_and_revoked(
    capsys: Captured, team: str, tmp_path: Path
) -> None:
    config = Path(team, ".watchroom/config.toml")
    config.write_text(
        config.read_text() + '\n[[policy.rules]]\nname = "shell"\ntool = "Bash"\nverdict = "ask"\n'
    )
    number = ask(team, tmp_path, "1")
    said = printed_json(
        capsys, "answer", team, str(number), "--approve", "--scope", "place", "--words", "1", "--uses", "2"
    )
    more = "any further words (also options that write files or run programs)"
    covers = f"alice may call Bash with the command npm and {more}, in the folder {tmp_path}"
    assert (said["outcome"], said["covers"]) == ("approved", covers)
    ask(team, tmp_path, "2", "npm run x")
    assert [state(team, "1") != "system", state(team, "2")] == [True, "system"]

    (entry,) = printed_json(capsys, "policy", "grants", team, "--json")
    assert (entry["grant"], entry["uses_left"], entry["covers"]) == (said["grant"], 1, covers)
    assert entry["until"] is not None
    assert entry["last_use"] is not None
    assert covers in printed(capsys, "policy", "grants", team)

    call = ("policy", "explain", team, "alice", "Bash", '{"command": "npm x"}', "--folder", str(tmp_path))
    assert f"Grant {said['grant']} of" in printed(capsys, *call)
    assert printed_json(capsys, *call, "--json")["grant"] == said["grant"]
    assert printed_json(capsys, *call[:-1], "/", "--json")["grant"] is None

    revoked = printed_json(capsys, "policy", "revoke", team, str(said["grant"]))
    assert revoked["success"]
    ask(team, tmp_path, "3")
    assert state(team, "3") == ""
    assert printed(capsys, "policy", "grants", team).strip() == "Nobody has granted calls."
    assert "Grant" not in printed(capsys, *call)


def test_a_scope_that_is_not_offered_is_refused(capsys: Captured, team: str, tmp_path: Path) -> None:
    number = ask(team, tmp_path, "1", "npm test && make")
    status, out, _ = run(capsys, "answer", team, str(number), "--approve", "--scope", "session")
    assert (status, json.loads(out)["error"]) == (REFUSED, "grant_refused")
    assert printed_json(capsys, "policy", "grants", team, "--json") == []


def test_wrong_uses_of_the_options_are_explained(capsys: Captured, team: str, tmp_path: Path) -> None:
    number = str(ask(team, tmp_path, "1"))
    assert "--scope" in misuse(capsys, "answer", team, number, "--approve", "--uses", "3")
    assert "--approve" in misuse(capsys, "answer", team, number, "--reject", "--scope", "session")
    past = ("--approve", "--scope", "place", "--until", "2020-01-01")
    assert "2020-01-01" in misuse(capsys, "answer", team, number, *past)
    assert "grants" in misuse(capsys, "policy", "revoke", team)
    assert "tool" in misuse(capsys, "policy", "explain", team, "alice")
    assert state(team, "1") == ""
