"""Files in a task's folder: writes that meet other changes, imported files, and the quota."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tasking import on_disk
from watchroom import Agent, Workspace
from watchroom.errors import TaskQuotaExceeded, VersionConflict
from watchroom.features.tasks.files import ChangeAuthor, Quota
from watchroom.features.tasks.folder import DiskUsage
from watchroom.kernel.call_context import CallContext

AUTHOR = ChangeAuthor(CallContext("alice", "clone_repository"), "Cloned.", {})


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    task = workspace.tasks.submit("human:dana", "Build something.", folder)
    workspace.register([Agent("alice", task=task.id)])
    return folder


def quota(workspace: Workspace, setting: str) -> None:
    config = Path(workspace.root) / ".watchroom" / "config.toml"
    config.write_text(f"{setting}\n" + config.read_text())
    workspace.scan()


def write(workspace: Workspace, path: str, content: str, expected: int = -1) -> int | None:
    return workspace.task_files.write(
        CallContext("alice", "write_file"), path, content, expected=expected
    ).version


def test_a_write_that_expects_another_version_is_told_what_is_there(
    workspace: Workspace, folder: Path
) -> None:
    assert write(workspace, "a", "one", 0) == 1
    assert write(workspace, "a", "two", 1) == 2
    for expected in (0, 1, 3):
        with pytest.raises(VersionConflict) as refused:
            write(workspace, "a", "mine", expected)
        assert (refused.value.current_content, refused.value.current and refused.value.current.version) == (
            "two",
            2,
        )
    assert on_disk(folder) == {"a": b"two"}


def test_a_link_in_place_of_the_scratch_folder_leads_nowhere(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(workspace, "a", "one", 0)
    for link in (folder / ".watchroom", folder / ".watchroom" / "tmp"):
        shutil.rmtree(folder / ".watchroom")
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(outside)
        write(workspace, "a", f"past {link.name}")
        assert (folder / "a").read_text() == f"past {link.name}"
        assert [*outside.iterdir()] == []


def test_of_a_file_that_is_gone_or_never_was_nothing_is_told(workspace: Workspace, folder: Path) -> None:
    with pytest.raises(VersionConflict) as refused:
        write(workspace, "a", "mine", 1)
    assert (refused.value.current_content, refused.value.current) == (None, None)
    write(workspace, "a", "one")
    (folder / "a").unlink()
    with pytest.raises(VersionConflict) as refused:
        write(workspace, "a", "mine", 1)
    assert refused.value.current_content is None
    assert refused.value.current is not None
    assert refused.value.current.deleted
    assert write(workspace, "a", "mine", 2) == 3


def test_files_are_laid_where_nothing_is(workspace: Workspace, folder: Path) -> None:
    write(workspace, "there", "mine")
    (folder / "link").symlink_to("/etc")
    task = workspace.task_files.task_of(CallContext("alice"))
    files = {"new/a": b"1", "there": b"2", "link/passwd": b"3", "there/below": b"4", "run": b"5"}
    rows, taken = workspace.task_files.add_files(task, files, AUTHOR, executables=["run"])
    assert sorted(taken) == ["link/passwd", "there", "there/below"]
    assert sorted(row.path.partition("/")[2] for row in rows) == ["new/a", "run"]
    assert {(row.actor, row.tool) for row in rows} == {("alice", "clone_repository")}
    assert on_disk(folder) == {"there": b"mine", "new/a": b"1", "run": b"5"}
    assert [bool((folder / name).stat().st_mode & 0o100) for name in ("run", "new/a")] == [True, False]


def test_a_file_counts_with_the_folders_that_it_needs_and_what_it_replaces(
    workspace: Workspace, folder: Path
) -> None:
    quota(workspace, "max_task_files = 3\nmax_task_bytes = 1000000")
    write(workspace, "a/b/c", "x")
    with pytest.raises(TaskQuotaExceeded):
        write(workspace, "d", "x")
    assert write(workspace, "a/b/c", "xy") == 2
    (folder / "a/b/c").unlink()
    assert write(workspace, "d", "x") == 1
    task = workspace.task_files.task_of(CallContext("alice"))
    with pytest.raises(TaskQuotaExceeded):
        workspace.task_files.add_files(task, {"e": b""}, AUTHOR)


def test_a_file_that_shrinks_makes_no_room_before_it_is_counted(workspace: Workspace, folder: Path) -> None:
    quota(workspace, "max_task_files = 100\nmax_task_bytes = 100000")
    write(workspace, "a", "x" * 50_000)
    with pytest.raises(TaskQuotaExceeded):
        write(workspace, "b", "x" * 60_000)
    write(workspace, "a", "x")
    assert write(workspace, "b", "x" * 60_000) == 1


@pytest.mark.parametrize(
    ("files", "size", "is_exceeded"), [(3, 10, False), (4, 10, True), (3, 11, True), (0, 0, False)]
)
def test_a_folder_may_hold_as_much_as_its_quota_says(files: int, size: int, is_exceeded: bool) -> None:
    bound, usage = Quota(3, 10), DiskUsage(files, size)
    assert (bound.is_exceeded_by(usage), bound.max_counted) == (is_exceeded, 6)
    if is_exceeded:
        with pytest.raises(TaskQuotaExceeded):
            bound.check(usage)
    else:
        bound.check(usage)


@pytest.mark.parametrize(("size", "told"), [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2)])
def test_sizes_are_told_in_whole_megabytes_begun_ones_too(size: int, told: int) -> None:
    assert Quota(1, 2_999_999).error_values(DiskUsage(5, size)) == {
        "files": 5,
        "most_files": 1,
        "megabytes": told,
        "most_megabytes": 2,
    }
