"""``watchroom verify``: says what differs, and repairs what can be kept."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import Captured, printed_rows, row_of, run
from watchroom import Workspace
from watchroom_tui.cli import OK, REFUSED


def test_verify_of_what_agrees_says_so_and_ends_with_0(capsys: Captured, team: str) -> None:
    status, out, _ = run(capsys, "verify", team)
    assert status == OK
    assert out.startswith("clean: ")
    status, out, _ = run(capsys, "verify", team, "--json")
    found = json.loads(out)
    assert (status, found["clean"], found["problems"]) == (OK, True, [])


def test_verify_of_what_differs_names_it_changes_nothing_and_ends_with_1(capsys: Captured, team: str) -> None:
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


def test_verify_repair_lays_the_file_out_again_and_keeps_what_it_held(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_text("by hand", encoding="utf-8")
    status, out, _ = run(capsys, "verify", team, "--repair")
    assert status == OK
    assert out.startswith("clean: ")
    assert file.read_text(encoding="utf-8") == "two"
    kept = row_of(capsys, team, "outside_edit")
    with Workspace.open(team, scan=False) as workspace:
        assert workspace.journal.content(kept["seq"]) == "by hand"


def test_verify_repair_leaves_what_cannot_be_kept_and_ends_with_1(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_bytes(b"\xff\xfe\0")
    status, _, err = run(capsys, "verify", team, "--repair")
    assert status == REFUSED
    assert "could not be mended" in err
    assert file.read_bytes() == b"\xff\xfe\0"
