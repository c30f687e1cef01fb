"""Files of a task that are no texts, and the right to execute them, are reverted as texts are."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from calls import ok
from effort import rounds
from watchroom import Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.side_stores import BLOBS_NAME

ANN = "human:ann"
ALICE, BOB = (ChangeAuthor(CallContext(agent, "run_command")) for agent in ("alice", "bob"))
SEEDS = range(rounds(4, 200))
LOGO = b"\x89PNG\x00\xff one"


def files_in(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The bytes of each file by its name, and whether it may be executed."""
    return {
        each.name: (each.read_bytes(), os.access(each, os.X_OK))
        for each in folder.iterdir()
        if each.is_file()
    }


def revert(workspace: Workspace, *agents: str, after: int) -> dict[str, str]:
    """Why what could not be reverted could not."""
    record = workspace.reverts.apply(CallContext(ANN), RevertSelection(agents, after=after)).record
    return {path.partition("/")[2]: reason for _, path, reason in record.could_not}


def test_bytes_that_an_agent_spoiled_come_back_and_go_again(team: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "logo.png").write_bytes(LOGO)
    (folder / "gone.bin").write_bytes(b"\x00gone")
    team.task_files.record_changes(CallContext("bob"), BOB)
    since, before = team.journal.last_seq(), files_in(folder)
    (folder / "logo.png").write_bytes(b"\xff\xfe\x00spoiled")
    (folder / "gone.bin").unlink()
    (folder / "new.bin").write_bytes(b"\x00new")
    (folder / "kept.py").write_bytes(b"\x00no text any more")
    team.task_files.record_changes(CallContext("alice"), ALICE)
    spoiled = files_in(folder)
    outcome = team.reverts.apply(CallContext(ANN), RevertSelection(("alice",), after=since))
    assert files_in(folder) == before
    assert outcome.record.could_not == ()
    assert team.verify() == []
    team.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert files_in(folder) == spoiled
    assert team.verify() == []


def test_bytes_that_somebody_else_replaced_since_stay(team: Workspace, tmp_path: Path) -> None:
    logo = tmp_path / "project/logo.png"
    for author, data in ((ALICE, LOGO), (BOB, LOGO + b"bob's")):
        logo.write_bytes(data)
        team.task_files.record_changes(author.call, author)
    assert revert(team, "alice", after=0) == {}
    assert logo.read_bytes() == LOGO + b"bob's"


def test_who_may_execute_a_file_is_kept_by_writes_and_reverted(team: Workspace, tmp_path: Path) -> None:
    script = tmp_path / "project/kept.py"
    script.chmod(0o755)
    team.task_files.record_changes(CallContext("bob"), BOB)
    ok(team.tools("bob"), "write_file", path="kept.py", content="print(2)\n")
    assert os.access(script, os.X_OK)
    since = team.journal.last_seq()
    script.chmod(0o644)
    assert [row.version for row in team.task_files.record_changes(CallContext("alice"), ALICE).rows] == [3]
    revert(team, "alice", after=since)
    assert os.access(script, os.X_OK)
    assert script.read_text() == "print(2)\n"
    assert team.verify() == []


def test_what_is_not_kept_any_more_is_said_and_nothing_else_suffers(team: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "logo.png").write_bytes(LOGO)
    team.task_files.record_changes(CallContext("bob"), BOB)
    since = team.journal.last_seq()
    for name in ("logo.png", "more.bin"):
        (folder / name).write_bytes(b"\x00spoiled")
    team.task_files.record_changes(CallContext("alice"), ALICE)
    blobs = tmp_path / "team/.watchroom" / BLOBS_NAME
    for place in blobs.parent.glob(f"{BLOBS_NAME}*"):
        place.write_bytes(b"no database")
    assert revert(team, "alice", after=since) == {"logo.png": "not_kept"}
    assert not (folder / "more.bin").exists()
    # What comes next is kept again.
    (folder / "next.bin").write_bytes(b"\x00next")
    team.task_files.record_changes(CallContext("bob"), BOB)
    since = team.journal.last_seq()
    (folder / "next.bin").unlink()
    team.task_files.record_changes(CallContext("alice"), ALICE)
    assert revert(team, "alice", after=since) == {}
    assert (folder / "next.bin").read_bytes() == b"\x00next"


@pytest.mark.parametrize("seed", SEEDS)
def test_reverting_everybody_gives_the_folder_back(team: Workspace, tmp_path: Path, seed: int) -> None:
    chance, folder = random.Random(seed), tmp_path / "project"

    def go_on() -> None:
        for _ in range(20):
            author, place = chance.choice((ALICE, BOB)), folder / chance.choice("abcd")
            kind = chance.random()
            if kind < 0.2 and place.exists():
                place.unlink()
            elif kind < 0.4 and place.exists():
                place.chmod(chance.choice((0o644, 0o755)))
            elif kind < 0.7:
                place.write_bytes(b"\x00" + chance.randbytes(chance.randrange(5)))
            else:
                place.write_text(
                    "".join(f"line {chance.randrange(99)}\n" for _ in range(chance.randrange(4)))
                )
            team.task_files.record_changes(author.call, author)

    go_on()
    moment, before = team.journal.last_seq(), files_in(folder)
    go_on()
    after = files_in(folder)
    first = team.reverts.apply(CallContext(ANN), RevertSelection(after=moment))
    assert files_in(folder) == before
    undone = team.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert files_in(folder) == after
    team.reverts.apply(CallContext(ANN), RevertSelection(undo=undone.id))
    assert files_in(folder) == before
    assert team.verify() == []


def test_a_file_whose_name_is_not_utf8_is_said_not_to_be_reverted(team: Workspace, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.txt")
    (tmp_path / "project" / name).write_text("alice's\n")
    (tmp_path / "project" / "other.txt").write_text("alice's\n")
    team.task_files.record_changes(CallContext("alice"), ALICE)
    assert revert(team, "alice", after=0) == {"\\udcff.txt": "unsafe_name"}
    assert (tmp_path / "project" / name).read_text() == "alice's\n"
    assert not (tmp_path / "project" / "other.txt").exists()
    assert team.verify() == []


@pytest.mark.parametrize("is_folder_first", [True, False])
def test_a_folder_in_the_place_of_a_file_is_reverted_and_back(
    team: Workspace, tmp_path: Path, is_folder_first: bool
) -> None:
    folder = tmp_path / "project"

    def make(is_folder: bool) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder / "place") if (folder / "place").is_dir() else (folder / "place").unlink()
        if is_folder:
            (folder / "place").mkdir()
        (folder / "place" / "inner" if is_folder else folder / "place").write_text(f"{is_folder}\n")

    make(is_folder_first)
    team.task_files.record_changes(BOB.call, BOB)
    since, before = team.journal.last_seq(), [*folder.rglob("*")]
    make(not is_folder_first)
    (folder / "zzz").write_text("after it\n")
    team.task_files.record_changes(ALICE.call, ALICE)
    changed = [*folder.rglob("*")]
    outcome = team.reverts.apply(CallContext(ANN), RevertSelection(("alice",), after=since))
    assert {*folder.rglob("*")} == {*before}
    team.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert {*folder.rglob("*")} == {*changed}
    assert team.verify() == []
