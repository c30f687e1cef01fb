"""A fork that is killed, wherever it touches the disk: there is no workspace then, or a whole one, and the next try
begins anew without anything in its way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calls import ok
from crash import forker
from tasking import on_disk
from watchroom import Agent, Workspace
from watchroom.history.fork import TASKS_SUFFIX, UNFINISHED


def test_wherever_it_is_killed_the_next_try_makes_the_whole_fork(tmp_path: Path) -> None:
    root, folder, made = tmp_path / "team", tmp_path / "project", tmp_path / "made"
    folder.mkdir()
    made.mkdir()
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:ann", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id)])
        ok(workspace.tools("alice"), "write_file", path="src/a.py", content="print(1)\n")
    out, tasks = made / "again", made / f"again{TASKS_SUFFIX}"
    command = [sys.executable, forker.__file__, str(root), str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def try_once(at: int) -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{at}\n")
            process.stdin.flush()
            return process.stdout.readline()

        left = set()
        kills = 0
        while try_once(kills + 1) == "killed\n":
            kills += 1
            found = {each.name for each in made.iterdir()}
            assert found <= {"again", tasks.name, f".again{UNFINISHED}"}
            left.add(frozenset(found))
            if out.exists():
                with Workspace.open(out) as workspace:
                    assert workspace.verify() == []
            else:
                # Also where the next one is killed at the beginning, and at once again.
                assert try_once(2) == "killed\n"
                assert try_once(0) == "done\n"
            assert on_disk(tasks / task.id) == {"src/a.py": b"print(1)\n"}
            for each in made.iterdir():
                shutil.rmtree(each)
        assert kills > 10
        # It was killed after each of the two folders came to its place, too.
        assert frozenset({tasks.name, f".again{UNFINISHED}"}) in left
        assert frozenset({"again", tasks.name, f".again{UNFINISHED}"}) in left
        process.stdin.close()


def test_what_others_put_where_a_killed_fork_was_is_left_alone(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", ["alice"]) as workspace:
        hidden = tmp_path / f".again{UNFINISHED}"
        (hidden / "workspace").mkdir(parents=True)
        (hidden / "placing").write_text("1:1")
        mine = tmp_path / f"again{TASKS_SUFFIX}" / "mine.txt"
        mine.parent.mkdir()
        mine.write_text("mine")
        with pytest.raises(FileExistsError):
            Workspace.fork(workspace.journal, workspace.journal.last_seq(), tmp_path / "again")
    assert mine.read_text() == "mine"


def test_a_fork_that_is_being_made_is_not_begun_again(tmp_path: Path) -> None:
    out = tmp_path / "again"
    told: list[int] = []
    with Workspace.open(tmp_path / "team", ["alice"]) as workspace:

        def begin_again(row: int, _: int) -> None:
            told.append(row)
            with pytest.raises(FileExistsError):
                Workspace.fork(workspace.journal, row, out)

        Workspace.fork(workspace.journal, workspace.journal.last_seq(), out, begin_again)
    assert told
    with Workspace.open(out) as workspace:
        assert workspace.verify() == []
    assert not (tmp_path / f".again{UNFINISHED}").exists()
