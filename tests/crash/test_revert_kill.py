"""A revert that is killed, wherever it touches the disk: afterwards there is all of it or nothing, and nothing
that others wrote is changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from calls import ok
from crash import reverter
from effort import rounds
from tasking import on_disk
from watchroom import Agent, Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext

LOGO = b"\x89PNG\x00\xff"
ONCE = RevertSelection(("alice",))
STEP = rounds(2, 1)
"""One of so many of the places where it touches the disk is tried."""


def spoil(root: Path, folder: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """A team whose alice spoils files; what is on disk before and after that is reverted."""
    folder.mkdir()
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:ann", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id), Agent("bob", task=task.id)])
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        for name in ("a.py", "b/c.py", "b/d.py"):
            ok(bob, "write_file", path=name, content=f"one\ntwo\n{name}\n")
        ok(bob, "collab_write", filepath="plan.md", content="1\n2\n3\n", expected_version=0, message="m")
        (folder / "logo.png").write_bytes(LOGO)
        workspace.task_files.record_changes(
            CallContext("bob"), ChangeAuthor(CallContext("bob", "run_command"))
        )
        right = {**on_disk(folder)}
        ok(alice, "write_file", path="a.py", content="spoiled\ntwo\na.py\n")
        ok(alice, "write_file", path="b/c.py", content="")
        ok(alice, "write_file", path="x/new.py", content="new\n")
        (folder / "logo.png").write_bytes(b"\x00spoiled")
        workspace.task_files.record_changes(
            CallContext("alice"), ChangeAuthor(CallContext("alice", "run_command"))
        )
        ok(alice, "collab_write", filepath="plan.md", content="x\n2\n3\n", expected_version=1, message="m")
        workspace.flush()
    return on_disk(folder), right


def test_wherever_it_is_killed_there_is_all_of_it_or_nothing(tmp_path: Path) -> None:
    root, folder = tmp_path / "team", tmp_path / "project"
    spoiled, right = spoil(root, folder)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path, kept)
    command = [sys.executable, reverter.__file__, str(root)]
    kills = wholes = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        told = ""
        while told != "done\n":
            kills += 1
            process.stdin.write(f"{1 + (kills - 1) * STEP}\n")
            process.stdin.flush()
            told = process.stdout.readline()
            with Workspace.open(root) as workspace:
                begun = workspace.journal.head("revert", "once")
                assert begun is None or begun.version == 2
                assert on_disk(folder) == (right if begun else spoiled)
                plan = root / "collaborative/current/plan.md"
                assert plan.read_text() == ("1\n2\n3\n" if begun else "x\n2\n3\n")
                assert workspace.verify() == []
                # The caller tries again: no second one is made.
                workspace.reverts.apply(CallContext("human:ann"), ONCE, revert_id="once")
                assert on_disk(folder) == right
                edits = [row.path for row in workspace.journal.rows(0) if row.actor == "outside"]
                assert edits == []
            wholes += begun is not None
            for place in (root, folder):
                shutil.rmtree(place)
                shutil.copytree(kept / place.name, place)
        process.stdin.close()
    # It was cut before its rows were there, and after that.
    assert kills - wholes > 3
    assert wholes > 3
