"""External edits are recorded while somebody is subscribed, whatever happens to the folders and the watches."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from queue import Empty, Queue
from types import SimpleNamespace

import pytest
from calls import ok
from cli.running import as_typed
from watchroom import Row, Workspace
from watchroom.kernel.background import EVERY_ROW
from watchroom.kernel.checkout.file_watcher import FileWatcher
from watchroom.platform import Platform, TreeWatch, detect_platform
from watchroom.platform.linux import LinuxPlatform

pytestmark = pytest.mark.slow(3)

PATIENCE = 60
FOLDER = "collaborative/current"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
NO_WATCHES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh")
"""Runs a command for which the system has no file watches."""

NextEdit = Callable[[], Row]


@pytest.fixture
def next_edit(workspace: Workspace) -> NextEdit:
    rows: Queue[Row] = Queue()
    workspace.background.subscribe(
        (EVERY_ROW,), lambda row: rows.put(row) if row.actor == "outside" else None
    )
    return lambda: rows.get(timeout=PATIENCE)


def write(workspace: Workspace, path: str) -> Path:
    ok(
        workspace.tools("alice"),
        "collab_write",
        filepath=path,
        content="one\n",
        message="m",
        expected_version=0,
    )
    return Path(workspace.root, FOLDER, path)


def watch(workspace: Workspace) -> Callable[[], None]:
    """Subscribe, and wait until the folders are watched. Return what ends the subscription."""
    modes: Queue[str] = Queue()
    end = workspace.file_watcher.subscribe(modes.put)
    assert modes.get(timeout=PATIENCE) == "events"
    return end


def until(next_edit: NextEdit, path: str, error: str) -> None:
    row = next_edit()
    while (row.path, row.error) != (path, error):
        row = next_edit()


def test_an_edit_is_recorded_while_anybody_is_subscribed(workspace: Workspace, next_edit: NextEdit) -> None:
    file = write(workspace, "plan.md")
    end, end_other = watch(workspace), watch(workspace)
    end()
    end()
    file.write_text("by hand\n")
    assert next_edit().path == "plan.md"
    end_other()
    end = watch(workspace)
    file.write_text("again\n")
    assert next_edit().path == "plan.md"
    end()


def test_a_folder_that_was_replaced_is_watched_again(workspace: Workspace, next_edit: NextEdit) -> None:
    file = write(workspace, "plan.md")
    watch(workspace)
    folder, beside = file.parent, file.parent.with_name("beside")
    shutil.copytree(folder, beside)
    shutil.rmtree(folder)
    until(next_edit, "plan.md", "outside_edit")
    beside.rename(folder)
    until(next_edit, "plan.md", "edit_undone")
    for text in ("new\n", "newer\n"):
        (folder / "new.md").write_text(text)
        until(next_edit, "new.md", "outside_edit")


@pytest.mark.sqlite("In another user namespace a process may not use the socket of the test's server.")
def test_without_watches_files_are_polled_and_people_are_told(workspace: Workspace) -> None:
    if subprocess.run([*NO_WATCHES, "true"], capture_output=True).returncode != 0:
        pytest.skip("the system has no user namespaces")
    file = write(workspace, "plan.md")
    command = [*NO_WATCHES, *as_typed("watch", workspace.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert "every 2 s, because the system has no file watches left" in next(
                line for line in process.stderr if "polling" in line
            )
            file.write_text("by hand\n")
            assert any("Needs you: external edit of plan.md." in line for line in process.stdout)
        finally:
            process.terminate()


@ON_LINUX
def test_an_edit_is_recorded_soon_after_it_was_made(workspace: Workspace) -> None:
    file = write(workspace, "plan.md")
    recorded: Queue[float] = Queue()
    workspace.background.subscribe(
        (EVERY_ROW,), lambda row: recorded.put(time.monotonic()) if row.actor == "outside" else None
    )
    watch(workspace)
    # The first one can be found by the scan at the start. Of the others, the quickest does not wait for a busy
    # machine.
    took: list[float] = []
    while len(took) < 2 or (min(took[1:]) >= 0.3 and len(took) < 50):
        file.write_text(f"{len(took)}\n")
        written = time.monotonic()
        took.append(recorded.get(timeout=PATIENCE) - written)
    assert min(took[1:]) < 0.3, took


def test_the_configuration_and_the_global_board_are_watched(
    workspace: Workspace, next_edit: NextEdit
) -> None:
    watch(workspace)
    for zone, name in (("board", "global-whiteboard.md"), ("config", ".watchroom/config.toml")):
        path, new = Path(workspace.root, name), Path(workspace.root).with_name("new")
        new.write_text((path.read_text() if path.exists() else "") + "\n# by hand\n")
        # In one step: on a busy machine a file that is made and then written is two edits.
        new.replace(path)
        assert next_edit().zone == zone


# -- without a workspace


class Checks:
    """A file watcher, and what it compares."""

    def __init__(self, folders: Sequence[Path], platform: Platform, files: Sequence[Path] = ()) -> None:
        self.scans: Queue[float] = Queue()
        self.checked: Queue[set[str]] = Queue()
        self.failures = 0
        self.watcher = FileWatcher(
            [str(each) for each in folders], [str(each) for each in files], self._check, self._scan, platform
        )

    def _check(self, paths: Iterable[str]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.checked.put(set(paths))

    def _scan(self) -> None:
        self.scans.put(time.monotonic())

    def start(self) -> None:
        """Subscribe, and wait for the first scan."""
        self.watcher.subscribe()
        self.scans.get(timeout=PATIENCE)

    def until_checked(self, paths: set[str]) -> list[set[str]]:
        """Wait until all ``paths`` have been checked. Return the batches."""
        batches: list[set[str]] = []
        while not paths <= set().union(*batches):
            batches.append(self.checked.get(timeout=PATIENCE))
        return batches


MakeChecks = Callable[..., Checks]


@pytest.fixture
def make_checks() -> Iterator[MakeChecks]:
    made: list[Checks] = []

    def make(*folders: Path, platform: Platform | None = None, files: Sequence[Path] = ()) -> Checks:
        made.append(Checks(folders, platform or detect_platform(), files))
        return made[-1]

    yield make
    for each in made:
        each.watcher.close()
    join_watchers()


def join_watchers() -> None:
    """Wait until the threads of closed watchers have ended."""
    for each in threading.enumerate():
        if each.name == "watchroom-files":
            each.join(PATIENCE)
            assert not each.is_alive()


def test_many_changes_are_checked_in_batches(tmp_path: Path, make_checks: MakeChecks) -> None:
    checks = make_checks(tmp_path)
    checks.start()
    paths = {str(tmp_path / f"{number}") for number in range(130)}
    for path in paths:
        Path(path).write_text("1")
    assert all(len(batch) <= 50 for batch in checks.until_checked(paths))


def test_files_whose_check_failed_are_checked_again(tmp_path: Path, make_checks: MakeChecks) -> None:
    checks = make_checks(tmp_path)
    checks.start()
    checks.failures = 1
    (tmp_path / "a").write_text("1")
    assert {str(tmp_path / "a")} in checks.until_checked({str(tmp_path / "a")})


def test_files_outside_of_the_folders_are_checked(tmp_path: Path, make_checks: MakeChecks) -> None:
    (tmp_path / "folder").mkdir()
    file = tmp_path / "file"
    checks = make_checks(tmp_path / "folder", files=[file])
    checks.start()
    file.write_text("1")
    checks.until_checked({str(file)})


@ON_LINUX
def test_an_overflow_has_everything_compared(tmp_path: Path) -> None:
    is_checking, goes_on = threading.Event(), threading.Event()

    def check_slowly(_: Iterable[str]) -> None:
        is_checking.set()
        goes_on.wait(PATIENCE)

    scans: Queue[None] = Queue()
    watcher = FileWatcher([str(tmp_path)], [], check_slowly, lambda: scans.put(None), detect_platform())
    with closing(watcher):
        watcher.subscribe()
        scans.get(timeout=PATIENCE)
        (tmp_path / "a").write_text("1")
        assert is_checking.wait(PATIENCE)
        for each in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 100):
            name = tmp_path / f"{each % 7}"
            os.mknod(name)
            name.unlink()
        with pytest.raises(Empty):
            scans.get_nowait()
        goes_on.set()
        scans.get(timeout=PATIENCE)
    join_watchers()


class Unwatched(LinuxPlatform):
    """A system that has no watches left."""

    def watch_tree(
        self,
        folders: Sequence[str],
        files: Sequence[str] = (),
        *,
        left_out: Callable[[Sequence[str]], Collection[str]] = lambda paths: (),
    ) -> TreeWatch:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("platform", [Platform(), Unwatched()], ids=["no inotify", "no watches left"])
def test_where_the_platform_cannot_watch_the_library_does(
    tmp_path: Path, make_checks: MakeChecks, platform: Platform
) -> None:
    checks = make_checks(tmp_path, platform=platform)
    modes: Queue[str] = Queue()
    checks.watcher.subscribe(modes.put)
    assert modes.get(timeout=PATIENCE) == "events"
    checks.scans.get(timeout=PATIENCE)
    (tmp_path / "a").write_text("1")
    checks.until_checked({str(tmp_path / "a")})


@ON_LINUX
def test_a_new_folder_for_which_no_watch_is_left_is_watched_by_the_library(
    tmp_path: Path, make_checks: MakeChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = make_checks(tmp_path)
    checks.start()
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("inotify_simple.INotify.add_watch", Unwatched().watch_tree)
    (tmp_path / "a").mkdir()
    checks.scans.get(timeout=PATIENCE)
    (tmp_path / "a/file").write_text("1")
    checks.until_checked({str(tmp_path / "a/file")})
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@ON_LINUX
def test_a_watcher_that_is_closed_ends_its_thread_and_closes_its_descriptors(tmp_path: Path) -> None:
    join_watchers()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        checks = Checks([tmp_path, tmp_path / "missing"], detect_platform())
        checks.start()
        checks.watcher.close()
        join_watchers()
    # watchfiles closes those of earlier tests on a thread of its own.
    assert len(os.listdir("/proc/self/fd")) <= before


def usage(thread: int) -> SimpleNamespace:
    """How often a thread of this process waited so far, and how long it ran."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    waits = [int(line.split()[1]) for line in status.splitlines() if line.startswith("voluntary")]
    ran = int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])
    return SimpleNamespace(waits=waits[0], ran=ran)


@ON_LINUX
def test_at_rest_the_thread_never_wakes_up(tmp_path: Path, make_checks: MakeChecks) -> None:
    for number in range(100):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        for name in "abcdefghij":
            (folder / name).touch()
    tasks = set(os.listdir("/proc/self/task"))
    checks = make_checks(tmp_path, tmp_path / "missing/folder")
    checks.start()
    # All threads that it started, in whatever language.
    (new,) = (int(each) for each in set(os.listdir("/proc/self/task")) - tasks)
    time.sleep(0.3)
    before = usage(new)
    time.sleep(1.5)
    assert usage(new) == before
    (tmp_path / "99/a").write_text("1")
    checks.until_checked({str(tmp_path / "99/a")})
    assert usage(new).waits > before.waits
