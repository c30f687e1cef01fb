"""``watchroom verify``: report differences, and repair them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from threading import Event

import pytest
from cli.running import Captured, printed_rows, row_of, run
from damage import break_content, journal_of, version_file
from seal.sealed import notes, tamper
from watchroom import Workspace
from watchroom.history.git import SealBranch
from watchroom.history.seal.anchors import state_folder
from watchroom.platform.signing import KeySigner
from watchroom_cli.main import OK, REFUSED, USAGE
from watchroom_tui.services.settings import settings_path


def test_verify_of_a_clean_workspace_ends_with_0(capsys: Captured, team: str) -> None:
    status, out, _ = run(capsys, "verify", team)
    assert status == OK
    assert out.startswith("clean: ")
    status, out, _ = run(capsys, "verify", team, "--json")
    found = json.loads(out)
    assert (status, found["clean"], found["problems"]) == (OK, True, [])


def test_verify_reports_differences_changes_nothing_and_ends_with_1(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_text("by hand", encoding="utf-8")
    rows = len(printed_rows(capsys, "log", team, "--json"))
    status, out, err = run(capsys, "verify", team)
    assert status == REFUSED
    assert out.splitlines() == ["file\tcollab\tplan.md\tdiffers"]
    assert f"watchroom verify {team} --repair" in err
    status, out, _ = run(capsys, "verify", team, "--json")
    assert (status, json.loads(out)["clean"], len(json.loads(out)["problems"])) == (REFUSED, False, 1)
    assert file.read_text(encoding="utf-8") == "by hand"
    assert len(printed_rows(capsys, "log", team, "--json")) == rows


def test_verify_repair_writes_the_file_again_and_records_its_content(
    capsys: Captured, team: str, on_machine: str
) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_text("by hand", encoding="utf-8")
    status, out, _ = run(capsys, "verify", team, "--repair")
    assert status == OK
    assert file.read_text(encoding="utf-8") == "two"
    kept = row_of(capsys, team, "outside_edit")
    *done, last = out.splitlines()
    assert done == [
        "repaired: collab plan.md (differs)",
        f"row {kept['seq']}: collab plan.md, ✎ external edit",
        f"needs you: plan.md, external edit{on_machine}",
    ]
    assert last.startswith("clean: ")
    with Workspace.open(team, scan=False) as workspace:
        assert workspace.journal.content(kept["seq"]) == "by hand"


def test_verify_repair_leaves_unstorable_files_and_ends_with_1(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_bytes(b"\xff\xfe\0")
    status, _, err = run(capsys, "verify", team, "--repair")
    assert status == REFUSED
    assert "could not be repaired" in err
    assert file.read_bytes() == b"\xff\xfe\0"


def test_verify_names_path_and_version_of_damage_and_repairs_the_file(capsys: Captured, team: str) -> None:
    version_file(team, "plan.md", 1).write_text("x", encoding="utf-8")
    status, out, _ = run(capsys, "verify", team)
    assert status == REFUSED
    assert out.splitlines() == ["version\tcollab\tplan.md\tv1 differs"]
    status, out, _ = run(capsys, "verify", team, "--json")
    assert json.loads(out)["problems"] == [
        {"kind": "version", "zone": "collab", "path": "plan.md", "what": "v1 differs", "version": 1}
    ]
    status, out, _ = run(capsys, "verify", team, "--repair")
    assert status == OK
    assert version_file(team, "plan.md", 1).read_text(encoding="utf-8") == "one"


def test_verify_reports_that_damaged_content_cannot_be_repaired(capsys: Captured, team: str) -> None:
    break_content(team, "plan.md", 1, b"other")
    status, out, err = run(capsys, "verify", team, "--repair")
    assert status == REFUSED
    (line,) = out.splitlines()
    assert line.startswith("journal\tcollab\tplan.md\tv1 (row ")
    assert "does not match its checksum; its version file is still whole" in line
    assert "never rewritten" in err
    assert "are unchanged" not in err


def test_verify_repair_reports_each_action(capsys: Captured, team: str) -> None:
    current = Path(team, "collaborative/current/plan.md")
    current.unlink()
    version_file(team, "plan.md", 1).write_text("x", encoding="utf-8")
    Path(team, "agents/bob/notes/a.md").write_text("by hand", encoding="utf-8")
    status, out, _ = run(capsys, "verify", team, "--repair", "--json")
    told = json.loads(out)
    assert (status, told["clean"], told["problems"]) == (OK, True, [])
    assert {(each["zone"], each["path"], each["what"]) for each in told["mended"]} == {
        ("collab", "plan.md", "differs"),
        ("collab", "plan.md", "v1 differs"),
        ("private", "bob/notes/a.md", "differs"),
    }
    assert {(row["zone"], row["path"]) for row in told["recorded"]} == {
        ("collab", "plan.md"),
        ("private", "bob/notes/a.md"),
    }
    (need,) = told["needs"]
    assert (need["kind"], need["path"]) == ("outside", "plan.md")
    assert need["row"] in [row["seq"] for row in told["recorded"]]
    status, out, _ = run(capsys, "verify", team, "--repair")
    assert (status, len(out.splitlines())) == (OK, 1), "what was told is not told again"


def test_verify_reports_the_sealed_rows_and_later_changes(
    capsys: Captured, team: str, tmp_path: Path
) -> None:
    (tmp_path / "shared").mkdir()
    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_text(f'publish = "{tmp_path}/shared"', encoding="utf-8")
    with Workspace.open(team) as workspace:
        workspace.sealing.publish_to(str(tmp_path / "shared"))
        assert workspace.sealing.write_due(Event(), at_once=True)
        sealed = workspace.sealing.newest()
        workspace.tools("alice").dispatch_tool_call("collab_list", {})
    assert sealed is not None
    (published,) = (tmp_path / "shared").iterdir()
    status, out, _ = run(capsys, "verify", team, "--against", str(published))
    line = out.splitlines()[-1]
    assert status == OK
    assert line.startswith(
        f"Seal covers rows up to {sealed.seal.seq} (signed by a known machine, key SHA256:"
    )
    assert f"published up to row {sealed.seal.seq}, " in line
    assert f"matches {published} up to row {sealed.seal.seq}" in line
    tamper(journal_of(team), "UPDATE rows SET time=time-1 WHERE seq=2")
    status, out, _ = run(capsys, "verify", team)
    assert (status, out.splitlines()[-1]) == (
        REFUSED,
        f"changed: rows after 0 up to the seal of row {sealed.seal.seq + 1} differ from what was sealed",
    )
    tamper(journal_of(team), f"DELETE FROM rows WHERE seq>{sealed.seal.seq - 2}")
    status, out, _ = run(capsys, "verify", team, "--against", str(published), "--json")
    seals = json.loads(out)["checkpoints"]
    assert status == REFUSED
    assert {(each["kind"], each["anchor"]["kind"]) for each in seals["findings"]} == {
        ("truncated", "place"),
        ("truncated", "given"),
    }


def test_verify_refuses_to_compare_with_a_file_that_is_not_a_seal(
    capsys: Captured, team: str, tmp_path: Path
) -> None:
    given = tmp_path / "seal.txt"
    given.write_text("watchroom/x\n", encoding="utf-8")
    status, _, err = run(capsys, "verify", team, "--against", str(given))
    assert status == REFUSED
    assert "not a valid journal seal" in err
    status, _, err = run(capsys, "verify", team, "--against", str(given) + "s")
    assert status == USAGE
    assert "Cannot compare with" in err


def test_verify_prints_an_unknown_machines_key_and_trusts_it_on_request(capsys: Captured, team: str) -> None:
    with Workspace.open(team) as workspace:
        assert workspace.sealing.write_due(Event(), at_once=True)
    # The folder may have the key of an earlier test.
    private = os.urandom(32)
    Path(state_folder(), "machine.key").write_bytes(private)
    with Workspace.open(team) as workspace:
        workspace.tools("alice").dispatch_tool_call("collab_list", {})
        workspace.flush()
        assert workspace.sealing.write_due(Event(), at_once=True)
    status, out, _ = run(capsys, "verify", team)
    sealed, told = out.splitlines()[-2:]
    assert status == REFUSED
    assert "signed by an unknown key, SHA256:" in sealed
    fingerprint = KeySigner(private).key.fingerprint
    assert f"watchroom verify {team} --trust {fingerprint}" in told
    status, out, _ = run(capsys, "verify", team, "--trust", fingerprint)
    assert (status, f"signed by a known machine, key {fingerprint}" in out) == (OK, True)
    assert run(capsys, "verify", team, "--trust", "dana")[0] == USAGE


def test_verify_against_a_repository_compares_with_the_seals_on_its_branch(
    capsys: Captured, team: str, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "seals")], check=True)
    with Workspace.open(team) as workspace:
        workspace.sealing.publish_to("", SealBranch(str(tmp_path / "seals")))
        # This writes the workspace's id, so that it is not in the part that is cut off.
        assert workspace.sealing.write_due(Event(), at_once=True)
        workspace.journal.append(notes(5))
        assert workspace.sealing.write_due(Event(), at_once=True)
        sealed = workspace.sealing.newest()
    assert sealed is not None
    for given in (f"{tmp_path}/seals", f"git:{tmp_path}/seals"):
        status, out, _ = run(capsys, "verify", team, "--against", given)
        assert (status, f"in git, covering rows up to {sealed.seal.seq}, " in out) == (OK, True)
    shutil.rmtree(state_folder())
    tamper(journal_of(team), f"DELETE FROM rows WHERE seq>{sealed.seal.seq - 2}")
    status, out, _ = run(capsys, "verify", team, "--against", given)
    assert (status, "truncated: " in out.splitlines()[-1]) == (REFUSED, True)
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "other")], check=True)
    status, out, _ = run(capsys, "verify", team, "--against", f"{tmp_path}/other")
    assert (status, "no seal of this journal in" in out) == (REFUSED, True)
    status, out, _ = run(capsys, "verify", team, "--against", f"{tmp_path}/other", "--json")
    assert (status, json.loads(out)["clean"]) == (REFUSED, False)
    assert run(capsys, "verify", team, "--against", team)[0] != OK


def test_verify_forgets_a_replaced_workspace_only_after_a_confirmation(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "team")
    for _ in range(2):
        shutil.rmtree(root, ignore_errors=True)
        with Workspace.open(root, agents=["alice"]) as workspace:
            assert workspace.sealing.write_due(Event(), at_once=True)
    status, out, _ = run(capsys, "verify", root)
    assert (status, f"watchroom verify {root} --forget" in out) == (REFUSED, True)
    status, _, err = run(capsys, "verify", root, "--forget")
    assert (status, "--yes" in err) == (USAGE, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "")
    assert run(capsys, "verify", root, "--forget")[0] == USAGE
    assert run(capsys, "verify", root)[0] == REFUSED
    status, out, _ = run(capsys, "verify", root, "--forget", "--yes")
    assert (status, "another workspace" in out) == (OK, False)
    # The place belongs to this workspace from now on.
    status, _, err = run(capsys, "verify", root, "--forget", "--yes")
    assert (status, "Nothing to forget" in err) == (USAGE, True)
    shutil.rmtree(root)
    Workspace.open(root, agents=["alice"]).close()
    assert run(capsys, "verify", root)[0] == REFUSED
