"""``watchroom export``: the files of a moment, written into a folder."""

from __future__ import annotations

import time
from pathlib import Path

from calls import ok
from cli.running import Captured, misuse, printed, row_of, run
from watchroom import Workspace
from watchroom.model import timestamp
from watchroom_cli.main import REFUSED, USAGE


def exported(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def test_export_lays_out_the_files_as_of_a_row(capsys: Captured, tmp_path: Path, team: str) -> None:
    first = row_of(capsys, team, "collab_write")
    out = tmp_path / "out"
    text = printed(capsys, "export", team, str(out), "--at", str(first["seq"]))
    assert f"row {first['seq']}" in text
    files = exported(out)
    assert files["collaborative/current/plan.md"] == "one"
    assert not any("raw.md" in name for name in files)


def test_export_lays_out_the_files_as_of_a_time_and_as_of_now(
    capsys: Captured, tmp_path: Path, root: Path, team: str
) -> None:
    with Workspace.open(team, scan=False) as workspace:
        last = workspace.journal.rows(workspace.journal.last_seq() - 1)[0]
        while time.time_ns() < last.time + 2_000_000:
            pass
        moment = timestamp(time.time_ns())
        while time.time_ns() < last.time + 6_000_000:
            pass
        ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content="three", message="m")
    printed(capsys, "export", team, str(tmp_path / "then"), "--at", moment)
    text = printed(capsys, "export", team, str(tmp_path / "now"))
    assert text.startswith("3 files as of row "), "versions and histories are not counted"
    assert printed(capsys, "export", team, str(tmp_path / "first"), "--at", "4").startswith(
        "1 file as of row 4"
    )
    assert exported(tmp_path / "then")["collaborative/current/plan.md"] == "two"
    assert exported(tmp_path / "now")["collaborative/current/plan.md"] == "three"
    assert exported(tmp_path / "now")["agents/bob/notes/a.md"] == "mine"


def test_export_into_a_folder_that_is_not_empty_is_wrong_usage(
    capsys: Captured, tmp_path: Path, team: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine", encoding="utf-8")
    assert f"{out} exists and is not empty" in misuse(capsys, "export", team, str(out))
    assert exported(out) == {"precious": "mine"}


def test_export_onto_a_file_is_a_refusal_and_not_a_crash(capsys: Captured, tmp_path: Path, team: str) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    status, _, err = run(capsys, "export", team, str(out))
    assert status in (REFUSED, USAGE)
    assert str(out) in err
    assert out.read_text(encoding="utf-8") == "mine"
