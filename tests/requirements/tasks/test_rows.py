"""Every file of a task has a row, whoever wrote it, and nothing that was written is lost."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from calls import ok
from tasking import Team, on_disk, without_privileges
from watchroom import Agent, Row, Workspace
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext
from watchroom.model import Write

COMMAND = ChangeAuthor(CallContext("alice", "run_command"), "make", {"command": "make"})


def heads(workspace: Workspace, folder: Path) -> dict[str, Row]:
    """Return the newest row of each existing file, by its path in the folder."""
    (task,) = [each.id for each in workspace.tasks.list() if each.folder == str(folder.resolve())]
    found = workspace.journal.heads("file", f"{task}/")
    return {head.path.removeprefix(f"{task}/"): head for head in found if not head.deleted}


def unaccounted(workspace: Workspace, folder: Path) -> list[str]:
    """Return the files that differ from their newest rows."""
    rows = heads(workspace, folder)
    sums = {path: hashlib.sha256(data).hexdigest() for path, data in on_disk(folder).items()}
    told = {path: row.detail.get("sha256") or row.sha256 for path, row in rows.items()}
    return sorted(path for path in sums.keys() | told.keys() if sums.get(path) != told.get(path))


def test_a_write_is_a_version_of_its_agent(team: Team) -> None:
    assert ok(team.one, "write_file", path="src/main.py", content="one\n")["version"] == 1
    assert ok(team.one, "write_file", path="src/main.py", content="two\n")["version"] == 2
    row = heads(team.workspace, team.folder)["src/main.py"]
    assert (row.actor, row.tool, row.version) == ("alice", "write_file", 2)
    assert team.workspace.journal.content(row.seq) == "two\n"
    assert unaccounted(team.workspace, team.folder) == []


def test_what_someone_else_wrote_is_kept_before_it_is_replaced(team: Team) -> None:
    ok(team.one, "write_file", path="plan.md", content="one\n")
    (team.folder / "plan.md").write_text("by hand\n")
    assert ok(team.one, "write_file", path="plan.md", content="two\n")["version"] == 3
    task = heads(team.workspace, team.folder)["plan.md"].path
    rows = team.workspace.journal.versions("file", task)
    assert [(row.actor, text) for row, text in rows] == [
        ("alice", "one\n"),
        ("outside", "by hand\n"),
        ("alice", "two\n"),
    ]


def test_what_is_read_has_a_row(team: Team) -> None:
    (team.folder / "notes.md").write_text("by hand\n")
    assert ok(team.one, "read_file", path="notes.md")["content"] == "by hand\n"
    assert heads(team.workspace, team.folder)["notes.md"].actor == "outside"


def test_what_a_command_changed_is_its_agents(team: Team) -> None:
    ok(team.one, "write_file", path="old.txt", content="old\n")
    ok(team.one, "write_file", path="kept.txt", content="kept\n")
    assert team.workspace.task_files.record_changes(CallContext("alice")).rows == []
    (team.folder / "old.txt").unlink()
    (team.folder / "build").mkdir()
    (team.folder / "build/out.bin").write_bytes(b"\0\1\2")
    (team.folder / "new.txt").write_text("new\n")
    rows = team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows
    assert {(row.actor, row.tool, row.path.partition("/")[2], row.deleted) for row in rows} == {
        ("alice", "run_command", "new.txt", False),
        ("alice", "run_command", "build/out.bin", False),
        ("alice", "run_command", "old.txt", True),
    }
    assert all(row.detail["command"] == "make" for row in rows)
    assert unaccounted(team.workspace, team.folder) == []
    assert team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows == []


def test_a_change_is_noticed_whatever_its_time_and_size(team: Team) -> None:
    path = team.folder / "same.txt"
    path.write_text("one\n")
    team.workspace.task_files.record_changes(CallContext("alice"))
    before = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (row,) = team.workspace.task_files.record_changes(CallContext("alice")).rows
    assert team.workspace.journal.content(row.seq) == "two\n"


def test_whatever_a_file_is_called_it_has_a_row_and_stops_nothing(team: Team) -> None:
    names = [
        "a..b.txt",
        "c:d",
        " edges ",
        "line\nbreak",
        "CON",
        "back\\slash",
        "~home",
        b"\xff".decode("utf-8", "surrogateescape"),
    ]
    for number, name in enumerate(names):
        (team.folder / name).write_text(f"{number}\n")
    rows = team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows
    assert sorted(team.workspace.journal.content(row.seq) or "" for row in rows) == [
        f"{number}\n" for number in range(len(names))
    ]
    assert team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows == []
    ok(team.one, "write_file", path="plain.md", content="x")


def test_a_file_that_became_a_folder_and_a_folder_that_became_a_file(team: Team) -> None:
    ok(team.one, "write_file", path="one", content="x")
    ok(team.one, "write_file", path="two/inner", content="x")
    (team.folder / "one").unlink()
    (team.folder / "two/inner").unlink()
    (team.folder / "two").rmdir()
    (team.folder / "one").mkdir()
    (team.folder / "one/inner").write_text("y")
    (team.folder / "two").write_text("y")
    rows = team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows
    assert {row.outcome for row in rows} == {"ok"}
    assert unaccounted(team.workspace, team.folder) == []


def test_what_is_on_disk_is_recorded_whatever_the_rows_say_of_what_is_around_it(team: Team) -> None:
    """The author changed the surroundings, too. Checking everything that ever existed would delay others."""
    for path in ("t/a/b", "t/a", "t/a/b/c"):
        (appended,) = team.workspace.journal.append([Write("alice", "write_file", "file", path, "x")])
        assert appended.row.outcome == "ok"


def test_what_nobody_may_look_into_is_told_and_stops_nothing(team: Team) -> None:
    ok(team.one, "write_file", path="closed/inner.txt", content="x")
    ok(team.one, "write_file", path="secret.txt", content="x")
    (team.folder / "open.txt").write_text("y")
    (team.folder / "secret.txt").chmod(0)
    (team.folder / "closed").chmod(0)
    team.folder.chmod(0o755)
    try:
        with without_privileges():
            rows = team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows
            assert team.workspace.task_files.record_changes(CallContext("alice"), COMMAND).rows == [], (
                "once is enough"
            )
    finally:
        (team.folder / "closed").chmod(0o755)
    found = {row.path.partition("/")[2]: (row.outcome, row.error) for row in rows}
    assert found["open.txt"] == ("ok", "")
    assert found["closed"] == ("failed", "permission_denied")
    assert "closed/inner.txt" not in found, "what cannot be seen is not gone"
    assert heads(team.workspace, team.folder)["closed/inner.txt"].version == 1


def test_what_git_keeps_for_itself_has_no_rows(team: Team) -> None:
    (team.folder / ".git/objects").mkdir(parents=True)
    (team.folder / ".git/objects/ab").write_bytes(b"x")
    (team.folder / ".gitignore").write_text("build\n")
    assert {
        row.path.partition("/")[2]
        for row in team.workspace.task_files.record_changes(CallContext("alice")).rows
    } == {".gitignore"}


def test_two_agents_of_one_task_share_its_files(team: Team) -> None:
    (task,) = [each for each in team.workspace.tasks.list() if each.folder == str(team.folder.resolve())]
    team.workspace.register([Agent("carol", task=task.id)])
    ok(team.one, "write_file", path="plan.md", content="ours\n")
    assert ok(team.workspace.tools("carol"), "read_file", path="plan.md")["content"] == "ours\n"


def test_a_folder_that_is_swapped_for_a_symlink_leads_nowhere(team: Team) -> None:
    """Sooner or later, the swap happens between the check and the step."""
    inside, aside = team.folder / "src", team.folder / "aside"
    inside.mkdir()
    (team.others / "main.py").write_text("theirs\n")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            # A writer that finds no folder creates a new one, which is swapped next.
            with suppress(OSError):
                inside.rename(aside)
            with suppress(OSError):
                inside.symlink_to(team.others)
            if inside.is_symlink():
                inside.unlink()
            with suppress(OSError):
                aside.rename(inside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        results = [
            team.one.dispatch_tool_call("write_file", {"path": "src/main.py", "content": f"{number}\n"})
            for number in range(150)
        ]
    finally:
        over.set()
        thread.join()
    assert on_disk(team.others) == {"main.py": b"theirs\n"}
    assert any(result["success"] for result in results)


def test_a_closed_workspace_leaves_nothing_of_its_own(tmp_path: Path, root: Path) -> None:
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "work")
        workspace.register([Agent("alice", task=task.id)])
        ok(workspace.tools("alice"), "write_file", path="a.md", content="x")
        ok(workspace.tools("alice"), "write_file", path="a.md", content="y")
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["a.md"]


def test_what_somebody_changed_in_the_folder_is_found_and_recorded(team: Team) -> None:
    ok(team.one, "write_file", path="kept.txt", content="x")
    ok(team.one, "write_file", path="changed.txt", content="x")
    ok(team.one, "write_file", path="gone.txt", content="x")
    assert team.workspace.verify() == []
    (team.folder / "changed.txt").write_text("by hand")
    (team.folder / "gone.txt").unlink()
    (team.folder / "new.txt").write_text("by hand")
    problems = team.workspace.verify()
    assert {(each.kind, each.zone, each.path.partition("/")[2]) for each in problems} == {
        ("file", "file", "changed.txt"),
        ("file", "file", "gone.txt"),
        ("file", "file", "new.txt"),
    }
    assert team.workspace.repair() == []
    assert on_disk(team.folder) == {"changed.txt": b"by hand", "kept.txt": b"x", "new.txt": b"by hand"}
    heads = team.workspace.journal.heads("file")
    newest = {head.path.partition("/")[2]: head.actor for head in heads}
    assert newest == {
        "changed.txt": "outside",
        "gone.txt": "outside",
        "kept.txt": "alice",
        "new.txt": "outside",
    }


def test_a_folder_that_nobody_has_looked_into_is_nobodys_business(team: Team) -> None:
    (team.folder / "old.txt").write_text("here before")
    assert team.workspace.verify() == []


@pytest.mark.parametrize("own", [".watchroom", ".watchroom/tmp"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_in_place_of_a_folder_of_ours_is_put_aside(team: Team, own: str, kind: str) -> None:
    """This process moves it, and the next one that opens the workspace as well."""
    root = team.workspace.root
    for _ in range(2):
        ok(team.one, "write_file", path="a.txt", content="x")
        shutil.rmtree(team.folder / own)
        if kind == "file":
            (team.folder / own).write_text("theirs")
        else:
            (team.folder / own).symlink_to(team.others)
        with Workspace.open(root, scan=False) as another:
            ok(another.tools("alice"), "write_file", path="b.txt", content="y")
        ok(team.one, "write_file", path="c.txt", content="z")
    assert on_disk(team.others) == {}
    assert not (team.others / "tmp").exists()


def test_a_folder_of_ours_that_somebody_cleaned_away_is_made_again(team: Team) -> None:
    ok(team.one, "write_file", path="a.txt", content="x")
    shutil.rmtree(team.folder / ".watchroom")
    ok(team.one, "write_file", path="b.txt", content="y")
    assert on_disk(team.folder) == {"a.txt": b"x", "b.txt": b"y"}
